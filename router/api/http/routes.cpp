// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/routes.h"

#include <algorithm>
#include <utility>

#include "common/base/strings.h"
#include "router/api/http/admin.h"
#include "router/api/http/error.h"
#include "router/api/http/generation.h"
#include "router/api/http/json_write.h"
#include "router/api/http/metrics_text.h"
#include "router/api/http/prepare.h"

namespace brigade::router {

/// A whole answer that another thread is to give.
class Routes::PendingReply final : public Call, public std::enable_shared_from_this<PendingReply> {
 public:
  PendingReply(std::shared_ptr<Mailbox> mailbox, std::shared_ptr<Exchange> exchange)
      : mailbox_(std::move(mailbox)), exchange_(std::move(exchange)) {}

  /// Any thread.
  void give(HttpReply reply) {
    mailbox_->post([self = shared_from_this(), reply = std::move(reply)] { self->answer(reply); });
  }
  /// Any thread; `make` is called on the I/O thread.
  void give_made(std::function<HttpReply()> make) {
    mailbox_->post([self = shared_from_this(), make = std::move(make)] { self->answer(make()); });
  }
  void on_gone() override { exchange_ = nullptr; }
  void on_shutdown() override { answer(to_reply(overloaded("The server is shutting down."))); }

 private:
  void answer(const HttpReply& reply) {
    if (const auto exchange = std::exchange(exchange_, nullptr)) exchange->reply(reply);
  }

  std::shared_ptr<Mailbox> mailbox_;
  std::shared_ptr<Exchange> exchange_;
};

struct Routes::Route {
  std::string_view path;
  bool is_prefix;
  std::string_view method;
  Scope scope;
  Handler handler;
};

const Routes::Route Routes::kRoutes[] = {
    {"/v1/completions", false, "POST", Scope::kInference, &Routes::completions},
    {"/v1/chat/completions", false, "POST", Scope::kInference, &Routes::chat},
    {"/tokenize", false, "POST", Scope::kInference, &Routes::tokenize},
    {"/detokenize", false, "POST", Scope::kInference, &Routes::detokenize},
    {"/v1/models", false, "GET", Scope::kInference, &Routes::models},
    {"/v1/models/", true, "GET", Scope::kInference, &Routes::model},
    {"/health", false, "GET", Scope::kOpen, &Routes::alive},
    {"/livez", false, "GET", Scope::kOpen, &Routes::alive},
    {"/readyz", false, "GET", Scope::kOpen, &Routes::ready},
    {"/ping", false, "GET", Scope::kOpen, &Routes::alive},
    {"/version", false, "GET", Scope::kOpen, &Routes::version},
    {"/v1/responses", false, "POST", Scope::kInference, &Routes::unsupported},
    {"/v1/embeddings", false, "POST", Scope::kInference, &Routes::unsupported},
    {"/status", false, "GET", Scope::kAdmin, &Routes::status},
    {"/metrics", false, "GET", Scope::kMetrics, &Routes::metrics},
    {"/drain", false, "POST", Scope::kAdmin, &Routes::drain},
};

const Routes::Route* Routes::find_route(std::string_view path) {
  const auto route =
      std::find_if(std::begin(kRoutes), std::end(kRoutes), [&](const Route& candidate) {
        return candidate.is_prefix
                   ? path.size() > candidate.path.size() && path.starts_with(candidate.path)
                   : path == candidate.path;
      });
  return route == std::end(kRoutes) ? nullptr : route;
}

Routes::Info Routes::find(std::string_view path) {
  const Route* route = find_route(path);
  if (route == nullptr) return {};
  return {.path = route->path, .scope = route->scope, .exists = true};
}

std::shared_ptr<Call> Routes::handle(HttpRequest request,
                                     const std::shared_ptr<Exchange>& exchange) {
  const Route* route = find_route(request.path);
  if (route == nullptr) {
    exchange->reply(to_reply(no_route(request.path)));
    return nullptr;
  }
  const std::string_view sent = request.method;
  const std::string_view method = sent == "HEAD" ? std::string_view("GET") : sent;
  if (method != route->method) {
    HttpReply reply = to_reply({.status = 405,
                                .message = str_cat(quoted(request.path), " takes ", route->method,
                                                   ", not ", quoted(request.method), ".")});
    reply.headers.emplace_back("Allow", route->method == "GET" ? "GET, HEAD" : "POST");
    exchange->reply(std::move(reply));
    return nullptr;
  }
  return (this->*route->handler)(request, exchange);
}

std::shared_ptr<Call> Routes::generate(Api api, HttpRequest& request,
                                       const std::shared_ptr<Exchange>& exchange) {
  if (!context_->service.accepting()) {
    exchange->reply(to_reply(overloaded("The server is shutting down.")));
    return nullptr;
  }
  auto call = std::make_shared<GenerationCall>(context_, exchange);
  call->start(api, std::move(request.body));
  return call;
}

std::shared_ptr<Call> Routes::completions(HttpRequest& request,
                                          const std::shared_ptr<Exchange>& exchange) {
  return generate(Api::kCompletions, request, exchange);
}

std::shared_ptr<Call> Routes::chat(HttpRequest& request,
                                   const std::shared_ptr<Exchange>& exchange) {
  return generate(Api::kChat, request, exchange);
}

std::shared_ptr<Call> Routes::in_pool(HttpReply (*answer)(const Service&, std::string_view),
                                      std::string body, const std::shared_ptr<Exchange>& exchange) {
  auto call = std::make_shared<PendingReply>(context_->mailbox, exchange);
  auto job = [call, answer, context = context_, text = std::move(body)] {
    call->give(answer(context->service, text));
  };
  if (context_->service.run_in_pool(std::move(job))) return call;
  call->on_gone();
  exchange->reply(to_reply(overloaded("Too many requests wait to be tokenized.")));
  return nullptr;
}

std::shared_ptr<Call> Routes::tokenize(HttpRequest& request,
                                       const std::shared_ptr<Exchange>& exchange) {
  return in_pool(&answer_tokenize, std::move(request.body), exchange);
}

std::shared_ptr<Call> Routes::detokenize(HttpRequest& request,
                                         const std::shared_ptr<Exchange>& exchange) {
  return in_pool(&answer_detokenize, std::move(request.body), exchange);
}

std::shared_ptr<Call> Routes::models(HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
  std::string body = "{\"object\":\"list\",\"data\":[";
  for (const auto& model : context_->service.models()) {
    if (body.back() != '[') body += ',';
    body += model_json(*model, context_->started_s);
  }
  exchange->reply({.body = body + "]}"});
  return nullptr;
}

std::shared_ptr<Call> Routes::model(HttpRequest& request,
                                    const std::shared_ptr<Exchange>& exchange) {
  const std::string name = request.path.substr(std::string_view("/v1/models/").size());
  const auto model = context_->service.find_model(name);
  exchange->reply(model == nullptr ? to_reply(model_not_found(name))
                                   : HttpReply{.body = model_json(*model, context_->started_s)});
  return nullptr;
}

std::shared_ptr<Call> Routes::alive(HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
  exchange->reply({.body = "{\"status\":\"ok\"}"});
  return nullptr;
}

std::shared_ptr<Call> Routes::ready(HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
  const Service& service = context_->service;
  if (service.ready() && service.accepting()) {
    exchange->reply({.body = "{\"status\":\"ready\"}"});
  } else {
    exchange->reply(to_reply(
        overloaded(service.accepting() ? "No replica is ready." : "The server is shutting down.")));
  }
  return nullptr;
}

std::shared_ptr<Call> Routes::version(HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
  std::string body = "{\"version\":";
  append_json_string(body, context_->version);
  exchange->reply({.body = body + "}"});
  return nullptr;
}

std::shared_ptr<Call> Routes::unsupported(HttpRequest& request,
                                          const std::shared_ptr<Exchange>& exchange) {
  exchange->reply(to_reply({.status = 404,
                            .message = str_cat(request.path,
                                               " is not served yet: use /v1/chat/completions or "
                                               "/v1/completions."),
                            .code = "unsupported_endpoint"}));
  return nullptr;
}

std::shared_ptr<Call> Routes::status(HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
  auto call = std::make_shared<PendingReply>(context_->mailbox, exchange);
  context_->service.status(
      [call](const RouterStatus& status) { call->give({.body = status_json(status)}); });
  return call;
}

std::shared_ptr<Call> Routes::metrics(HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
  auto call = std::make_shared<PendingReply>(context_->mailbox, exchange);
  context_->service.metrics([call, context = context_](const RouterMetrics& metrics) {
    call->give_made([context, metrics] {
      std::vector<std::string> names;
      for (const auto& model : context->service.models())
        names.push_back(model->name);
      return HttpReply{
          .body = metrics_text(metrics, context->door_metrics(), names, context->vllm_metrics),
          .content_type = "text/plain; version=0.0.4; charset=utf-8"};
    });
  });
  return call;
}

std::shared_ptr<Call> Routes::drain(HttpRequest& request,
                                    const std::shared_ptr<Exchange>& exchange) {
  ApiError error{.status = 403,
                 .message = "Without API keys, /drain is taken from this machine alone."};
  std::uint32_t replica = 0;
  if (request.is_operator) {
    if (auto bad = parse_drain(request.body, replica)) {
      error = std::move(*bad);
    } else {
      auto call = std::make_shared<PendingReply>(context_->mailbox, exchange);
      context_->service.drain(replica, [call, replica](const Status& status) {
        call->give(status.ok() ? HttpReply{.body = str_cat("{\"replica\":", replica,
                                                           ",\"state\":\"draining\"}")}
                               : to_reply(from_status(status)));
      });
      return call;
    }
  }
  exchange->reply(to_reply(error));
  return nullptr;
}

}  // namespace brigade::router
