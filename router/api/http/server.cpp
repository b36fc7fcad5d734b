// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>
#include <utility>

#include "router/api/http/context.h"
#include "router/api/http/listener.h"

namespace brigade::router {
namespace {

namespace asio = boost::asio;

/// For the last errors to reach their clients at shutdown.
constexpr Duration kStopGrace = std::chrono::milliseconds(300);

/// What the files say.
struct Secrets {
  std::optional<config::ApiKeyFile> keys;
  std::shared_ptr<const TlsContext> tls;
};

Result<Secrets> load_secrets(const HttpOptions& options) {
  Secrets secrets;
  if (!options.api_keys.empty()) {
    ASSIGN_OR_RETURN(secrets.keys, config::load_api_keys(options.api_keys));
    if (!options.local_key.empty()) {
      secrets.keys->keys.push_back({.id = std::string(config::api_key_id(options.local_key)),
                                    .name = "commands of this user",
                                    .tenant = "local",
                                    .hash = config::hash_api_key(options.local_key),
                                    .scopes = {.inference = true, .admin = true, .metrics = true}});
    }
  }
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return invalid_argument("TLS needs both a certificate and its key");
  }
  if (!options.tls_certificate.empty()) {
    ASSIGN_OR_RETURN(secrets.tls, load_tls(options.tls_certificate, options.tls_key));
  }
  return secrets;
}

bool is_loopback(const ListenAddress& at) {
  return at.host == "localhost" || at.host == "::1" || at.host.starts_with("127.");
}

}  // namespace

struct HttpServer::Impl {
  Impl(HttpOptions given, Service& service)
      : options(std::move(given)),
        mailbox(
            std::make_shared<Mailbox>([this] { asio::post(io, [box = mailbox] { box->run(); }); })),
        routes(std::make_shared<const DoorContext>(
            DoorContext{.service = service,
                        .mailbox = mailbox,
                        .version = options.version,
                        .started_s = unix_seconds(),
                        .door_metrics = [this] { return door_metrics(); },
                        .vllm_metrics = options.vllm_metrics})) {}

  Status listen() {
    ASSIGN_OR_RETURN(const Secrets secrets, load_secrets(options));
    if (secrets.keys) shared.gate.set_keys(*secrets.keys);
    if (!options.access_log.empty()) {
      ASSIGN_OR_RETURN(shared.access_log, AccessLog::open(options.access_log));
    }
    const bool apart = options.admin.has_value();
    ASSIGN_OR_RETURN(auto clients, AddressList::parse(options.allow_addresses));
    RETURN_IF_ERROR(
        add(options.at, {.inference = true, .admin = !apart}, std::move(clients), secrets.tls));
    if (!apart) return {};
    ASSIGN_OR_RETURN(auto operators, AddressList::parse(options.admin_allow_addresses));
    return add(*options.admin, {.inference = false, .admin = true}, std::move(operators),
               is_loopback(*options.admin) ? nullptr : secrets.tls);
  }

  Status add(const ListenAddress& at, Surface surface, AddressList allowed,
             std::shared_ptr<const TlsContext> tls) {
    listeners.push_back(
        std::make_unique<Listener>(io, ServerCore{.options = options,
                                                  .routes = routes,
                                                  .shared = shared,
                                                  .surface = surface,
                                                  .allowed_peers = std::move(allowed),
                                                  .tls = std::move(tls)}));
    return listeners.back()->listen(at, shared.gate.has_keys(), options.allow_remote);
  }

  /// On the I/O thread.
  void use(const Secrets& secrets) {
    if (secrets.keys) shared.gate.set_keys(*secrets.keys);
    for (std::size_t i = 0; i < listeners.size() && secrets.tls != nullptr; ++i) {
      if (i == 0 || !is_loopback(*options.admin)) listeners[i]->set_tls(secrets.tls);
    }
  }

  [[nodiscard]] DoorMetrics door_metrics() const {
    DoorMetrics metrics{.counts = shared.counts, .refusals = shared.gate.refusals()};
    for (const auto& listener : listeners)
      metrics.open_connections += listener->num_connections();
    if (shared.access_log) metrics.access_log_dropped = shared.access_log->dropped();
    return metrics;
  }

  void for_each_connection(const std::function<void(Connection&)>& function) {
    for (const auto& listener : listeners)
      listener->for_each_connection(function);
  }

  /// On the I/O thread: no more work comes, and run() returns with the last connection.
  void begin_stop() {
    shared.stopping = true;
    for (const auto& listener : listeners)
      listener->begin_stop();
  }

  HttpOptions options;
  asio::io_context io{1};
  std::shared_ptr<Mailbox> mailbox;
  Routes routes;
  ServerShared shared;
  std::vector<std::unique_ptr<Listener>> listeners;  ///< the public one, the admin one
  std::promise<void> ended;
  std::thread thread;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  stop(Clock::now());
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpOptions options, Service& service) {
  auto impl = std::make_unique<Impl>(std::move(options), service);
  RETURN_IF_ERROR(impl->listen());
  Impl& state = *impl;
  for (const auto& listener : state.listeners)
    listener->accept();
  state.thread = std::thread([&state] {
    state.io.run();
    state.ended.set_value();
  });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

std::string HttpServer::address() const {
  return impl_->listeners.front()->address();
}

std::string HttpServer::url() const {
  return impl_->listeners.front()->url();
}

std::string HttpServer::admin_url() const {
  return impl_->listeners.back()->url();
}

Status HttpServer::reload() {
  if (impl_->shared.access_log) impl_->shared.access_log->reopen();
  ASSIGN_OR_RETURN(Secrets secrets, load_secrets(impl_->options));
  impl_->mailbox->post(
      [state = impl_.get(), secrets = std::move(secrets)] { state->use(secrets); });
  return {};
}

void HttpServer::stop(TimePoint deadline) {
  Impl& state = *impl_;
  if (!state.thread.joinable()) return;
  auto ended = state.ended.get_future();
  asio::post(state.io, [&state] { state.begin_stop(); });
  if (ended.wait_until(deadline) != std::future_status::ready) {
    asio::post(state.io, [&state] {
      state.for_each_connection([](Connection& connection) { connection.shut_down(); });
    });
    if (ended.wait_for(kStopGrace) != std::future_status::ready) {
      asio::post(state.io, [&state] {
        state.for_each_connection([](Connection& connection) { connection.reset(); });
        state.io.stop();
      });
    }
  }
  state.thread.join();
  state.mailbox->close();
  for (const auto& listener : state.listeners)
    listener->drop_connections();
}

}  // namespace brigade::router
