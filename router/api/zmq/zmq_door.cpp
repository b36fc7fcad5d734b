// SPDX-License-Identifier: Apache-2.0
#include "router/api/zmq/zmq_door.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/net/poller.h"
#include "common/net/socket.h"
#include "router/api/http/admin.h"
#include "router/api/prompt.h"
#include "router/api/zmq/clients.h"
#include "router/api/zmq/items.h"

namespace brigade::router {
namespace {

constexpr int kReadsPerRound = 256;
constexpr std::uint32_t kMaxAwaited = 16;  ///< status and drain answers of one client
constexpr Duration kIdleWait = std::chrono::hours(1);
constexpr Duration kLastWords = std::chrono::milliseconds(200);
/// For the last outputs of cancelled requests when the door closes.
constexpr Duration kWindDown = std::chrono::seconds(1);

wire::FromRouter refused(std::uint64_t request, Status status, std::uint32_t retry_after_s = 0) {
  const wire::DropReason reason = wire::drop_reason_of(status.code(), /*computed=*/false);
  return wire::Refused{.request = request,
                       .status = std::move(status),
                       .retry_after_s = retry_after_s,
                       .reason = reason};
}

bool is_ending(const wire::FromRouter& message) {
  return std::holds_alternative<wire::Finished>(message) ||
         std::holds_alternative<wire::Refused>(message);
}

}  // namespace

struct ZmqDoor::Impl {
  Impl(net::Socket door_socket, ZmqDoorOptions door_options, Service& router)
      : socket(std::move(door_socket)),
        options(std::move(door_options)),
        service(router),
        outbox(std::make_shared<DoorOutbox>(options.max_outbox)),
        clients(socket, service) {}

  void loop();
  [[nodiscard]] TimePoint next_wake() const;
  void take_items();
  void take(OutputItem& item);
  void take(PromptItem& item);
  void take(ReplyItem& item);

  void receive_some();
  void receive(const net::Received& received);
  void handle(const net::Received& from, wire::Generate message);
  void handle(const net::Received& from, const wire::Cancel& message);
  void handle(const net::Received& from, const wire::ListModels& message);
  void handle(const net::Received& from, const wire::GetStatus& message);
  void handle(const net::Received& from, const wire::Drain& message);
  [[nodiscard]] Status check(const net::Received& from, const wire::Generate& message);

  /// For an answer that comes from the router's thread. Null when the client waits for too many
  /// already: it has been told.
  [[nodiscard]] std::function<void(wire::FromRouter)> reply_to(const net::Received& from,
                                                               std::uint64_t request);

  net::Socket socket;
  ZmqDoorOptions options;
  Service& service;
  std::string endpoint;
  std::shared_ptr<DoorOutbox> outbox;
  std::vector<DoorItem> items;
  Clients clients;
  std::uint64_t next_serial = 1;
  TimePoint next_keep_alive = Clock::now();
  std::thread thread;
  std::atomic<bool> stopping = false;
  net::EventFd stop_event;
};

Result<std::unique_ptr<ZmqDoor>> ZmqDoor::start(net::Context& context, ZmqDoorOptions options,
                                                Service& service) {
  net::SocketOptions socket_options = {.max_message_bytes = wire::kMaxClientBytes,
                                       .max_frames = 1,
                                       .max_queued = options.max_queued_per_client,
                                       .linger = kLastWords,
                                       .keys = options.keys,
                                       .allowed = {net::Role::kService, net::Role::kOperator}};
  ASSIGN_OR_RETURN(net::Socket socket, net::Socket::router(context, std::move(socket_options)));
  ASSIGN_OR_RETURN(std::string bound, socket.bind(options.endpoint));
  auto impl = std::make_unique<Impl>(std::move(socket), std::move(options), service);
  impl->endpoint = std::move(bound);
  impl->thread = std::thread([door = impl.get()] { door->loop(); });
  return std::unique_ptr<ZmqDoor>(new ZmqDoor(std::move(impl)));
}

ZmqDoor::ZmqDoor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ZmqDoor::~ZmqDoor() {
  impl_->stopping = true;
  impl_->stop_event.signal();
  impl_->thread.join();
  impl_->outbox->close();
}

const std::string& ZmqDoor::endpoint() const {
  return impl_->endpoint;
}

void ZmqDoor::Impl::loop() {
  net::Poller poller;
  poller.add(socket);
  poller.add_fd(outbox->fd());
  poller.add_fd(stop_event.fd());
  TimePoint stop_deadline = kNever;
  while (true) {
    take_items();
    if (stop_deadline == kNever) receive_some();
    const TimePoint now = Clock::now();
    if (now >= next_keep_alive) {
      clients.keep_alive();
      next_keep_alive = now + options.keep_alive_interval;
    }
    if (stopping && stop_deadline == kNever) {
      stop_deadline = now + kWindDown;
      // Not the socket: what arrives is not read any more.
      poller.clear();
      poller.add_fd(outbox->fd());
      clients.cancel_all();
    }
    if (stopping && (clients.num_requests() == 0 || now >= stop_deadline)) return;
    const Result<bool> waited = poller.wait(std::min(next_wake(), stop_deadline));
    if (!waited.ok()) log_error(str_cat("client door: ", waited.status().message()));
  }
}

TimePoint ZmqDoor::Impl::next_wake() const {
  return clients.empty() ? Clock::now() + kIdleWait : next_keep_alive;
}

void ZmqDoor::Impl::take_items() {
  outbox->take(items);
  for (DoorItem& item : items) {
    std::visit([this](auto& one) { take(one); }, item);
  }
}

void ZmqDoor::Impl::take(OutputItem& item) {
  if (clients.find(item.key) == nullptr) return;
  for (const wire::FromRouter& message : to_messages(item.key.request, std::move(item.output))) {
    const bool ends = is_ending(message);
    clients.send(item.key.client, message, ends);
    if (ends) clients.end(item.key);
  }
}

void ZmqDoor::Impl::take(PromptItem& item) {
  OpenRequest* open = clients.find(item.key);
  if (open == nullptr) return;
  const std::uint64_t number = item.key.request;
  if (!item.ids.ok() || open->cancelled) {
    const wire::FromRouter ending =
        open->cancelled ? wire::FromRouter(wire::Finished{.request = number,
                                                          .reason = wire::FinishReason::kCancelled})
                        : refused(number, item.ids.status());
    clients.send(item.key.client, ending, /*ends=*/true);
    clients.end(item.key);
    return;
  }
  Request request = {.id = 0,
                     .tenant = std::move(open->tenant),
                     .model = open->model->name,
                     .prompt = std::move(item.ids).value(),
                     .params = std::move(open->params),
                     .bad_words = std::move(item.bad_words)};
  open->model = nullptr;
  open->id =
      service.submit(std::move(request), std::make_shared<DoorSink>(outbox, service, item.key));
  clients.send(item.key.client, wire::Accepted{.request = number}, /*ends=*/false);
}

void ZmqDoor::Impl::take(ReplyItem& item) {
  Client* client = clients.find(item.client);
  if (client == nullptr) return;
  --client->num_awaited;
  clients.send(item.client, item.message, /*ends=*/false);
  clients.close_if_idle(item.client);
}

void ZmqDoor::Impl::receive_some() {
  for (int i = 0; i < kReadsPerRound; ++i) {
    const Result<std::optional<net::Received>> received = socket.receive();
    if (!received.ok()) {
      log_warning(str_cat("client door: ", received.status().message()));
    } else if (!received->has_value()) {
      return;
    } else {
      receive(**received);
    }
  }
}

void ZmqDoor::Impl::receive(const net::Received& received) {
  if (received.frames.size() != 1) {
    clients.answer(received.peer, refused(0, invalid_argument("a message is one frame")));
    return;
  }
  Result<wire::ToRouter> message = wire::decode_to_router(received.frames[0].bytes());
  if (!message.ok()) {
    clients.answer(received.peer, refused(0, invalid_argument(message.status().message())));
    return;
  }
  std::visit([&](auto& m) { handle(received, std::move(m)); }, *message);
}

Status ZmqDoor::Impl::check(const net::Received& from, const wire::Generate& message) {
  if (message.request == 0) return invalid_argument("request numbers start at 1");
  const Client* client = clients.find(clients.open(from.peer));
  if (client->requests.contains(message.request)) {
    return invalid_argument(str_cat("request ", message.request, " is in flight already"));
  }
  if (client->requests.size() >= options.max_requests_per_client) {
    return resource_exhausted(str_cat("this client has ", client->requests.size(),
                                      " requests in flight, as many as it may"));
  }
  if (client->overrun) return resource_exhausted("this client does not read its answers");
  if (clients.num_requests() >= options.max_requests) {
    return resource_exhausted(str_cat("there are ", clients.num_requests(), " requests in flight"));
  }
  if (!service.accepting()) return unavailable("the router is shutting down");
  if (service.find_model(message.model) == nullptr) {
    return not_found(str_cat("no model ", quoted(message.model)));
  }
  return {};
}

void ZmqDoor::Impl::handle(const net::Received& from, wire::Generate message) {
  Status status = check(from, message);
  const ClientId client = clients.open(from.peer);
  const RequestKey key = {.client = client, .request = message.request, .serial = next_serial++};
  if (status.ok()) {
    auto model = service.find_model(message.model);
    const bool queued =
        service.run_in_pool([box = outbox, key, model, prompt = std::move(message.prompt),
                             words = message.params.bad_words] {
          box->push_always(
              PromptItem{key, prompt_tokens(*model, prompt), bad_word_tokens(*model, words)});
        });
    if (queued) {
      clients.add(client, message.request,
                  {.serial = key.serial,
                   .model = std::move(model),
                   .tenant = std::move(message.tenant),
                   .params = std::move(message.params)});
      return;
    }
    status = resource_exhausted("too many prompts wait to be tokenized");
  }
  const bool later =
      status.code() == StatusCode::kResourceExhausted || status.code() == StatusCode::kUnavailable;
  clients.answer(from.peer, refused(message.request, std::move(status), later ? 1 : 0));
  clients.close_if_idle(client);
}

void ZmqDoor::Impl::handle(const net::Received& from, const wire::Cancel& message) {
  const ClientId id = clients.open(from.peer);
  Client* client = clients.find(id);
  const auto it = client->requests.find(message.request);
  if (it != client->requests.end()) clients.cancel(it->second);
  clients.close_if_idle(id);
}

void ZmqDoor::Impl::handle(const net::Received& from, const wire::ListModels& message) {
  wire::Models models = {.request = message.request, .models = {}};
  for (const auto& model : service.models()) {
    models.models.push_back({.name = model->name,
                             .max_context = static_cast<std::uint64_t>(model->max_context),
                             .vocab_size = static_cast<std::uint32_t>(model->spec.vocab_size)});
  }
  clients.answer(from.peer, models);
}

std::function<void(wire::FromRouter)> ZmqDoor::Impl::reply_to(const net::Received& from,
                                                              std::uint64_t request) {
  const ClientId id = clients.open(from.peer);
  Client* client = clients.find(id);
  if (client->num_awaited >= kMaxAwaited) {
    clients.answer(from.peer, refused(request, resource_exhausted("wait for earlier answers"), 1));
    return nullptr;
  }
  ++client->num_awaited;
  return [box = outbox, id](wire::FromRouter message) {
    box->push_always(ReplyItem{id, std::move(message)});
  };
}

void ZmqDoor::Impl::handle(const net::Received& from, const wire::GetStatus& message) {
  auto reply = reply_to(from, message.request);
  if (!reply) return;
  service.status([reply = std::move(reply), request = message.request](const RouterStatus& s) {
    reply(wire::StatusReply{.request = request, .json = status_json(s)});
  });
}

void ZmqDoor::Impl::handle(const net::Received& from, const wire::Drain& message) {
  if (options.keys && from.role != net::Role::kOperator) {
    clients.answer(from.peer, refused(message.request, Status(StatusCode::kPermissionDenied,
                                                              "draining needs an operator's key")));
    return;
  }
  auto reply = reply_to(from, message.request);
  if (!reply) return;
  service.drain(message.replica,
                [reply = std::move(reply), request = message.request](Status status) {
                  if (status.ok()) return reply(wire::Done{.request = request});
                  reply(refused(request, std::move(status)));
                });
}

}  // namespace brigade::router
