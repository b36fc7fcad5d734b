// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "router/api/http/context.h"
#include "router/api/http/gate.h"
#include "router/api/http/http.h"
#include "router/api/http/parse.h"

namespace brigade::router {

/// From a path and a method to an answer. On the I/O thread; nothing here takes long.
class Routes final {
 public:
  explicit Routes(std::shared_ptr<const DoorContext> context) : context_(std::move(context)) {}

  struct Info {
    std::string_view path = "other";  ///< as in the table: of these there are only so many
    Scope scope = Scope::kOpen;
    bool exists = false;
  };
  [[nodiscard]] static Info find(std::string_view path);

  /// Answers at once by `exchange`, or returns the call that will. HEAD is asked as GET.
  std::shared_ptr<Call> handle(HttpRequest request, const std::shared_ptr<Exchange>& exchange);

 private:
  class PendingReply;
  struct Route;
  using Handler = std::shared_ptr<Call> (Routes::*)(HttpRequest&, const std::shared_ptr<Exchange>&);

  static const Route kRoutes[];
  static const Route* find_route(std::string_view path);

  std::shared_ptr<Call> completions(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> chat(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> tokenize(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> detokenize(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> models(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> model(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> alive(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> ready(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> version(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> unsupported(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> status(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> metrics(HttpRequest&, const std::shared_ptr<Exchange>&);
  std::shared_ptr<Call> drain(HttpRequest&, const std::shared_ptr<Exchange>&);

  std::shared_ptr<Call> in_pool(HttpReply (*answer)(const Service&, std::string_view),
                                std::string body, const std::shared_ptr<Exchange>& exchange);
  std::shared_ptr<Call> generate(Api api, HttpRequest&, const std::shared_ptr<Exchange>&);

  std::shared_ptr<const DoorContext> context_;
};

}  // namespace brigade::router
