// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/net/socket.h"
#include "common/wire/codec.h"
#include "router/api/service.h"
#include "router/api/zmq/items.h"

namespace brigade::router {

struct OpenRequest {
  std::uint64_t serial = 0;
  RequestId id = 0;  ///< 0: its prompt is still being made
  bool cancelled = false;
  std::shared_ptr<const ServedModel> model;  ///< until it is submitted
  std::string tenant;
  wire::GenerationParams params;
};

struct Client {
  std::string identity;
  std::map<std::uint64_t, OpenRequest> requests;  ///< by the client's number
  std::uint32_t num_awaited = 0;                  ///< answers to come from the router's thread
  /// It does not read: its queue is full. Its requests have been cancelled, and what it must still
  /// be told waits here, one message a request.
  bool overrun = false;
  std::vector<wire::FromRouter> owed;
};

/// The door's clients that have something open, and sending to them. A client is known while it has
/// requests or answers to come. One thread.
class Clients final {
 public:
  Clients(net::Socket& socket, Service& service) : socket_(socket), service_(service) {}

  /// Finds the client, or opens it.
  ClientId open(const std::string& identity);
  [[nodiscard]] Client* find(ClientId client);
  /// Null when it has ended, or its number is another request's by now.
  [[nodiscard]] OpenRequest* find(const RequestKey& key);
  [[nodiscard]] std::size_t num_requests() const { return num_requests_; }
  [[nodiscard]] bool empty() const { return clients_.empty(); }

  void add(ClientId client, std::uint64_t request, OpenRequest open);
  void end(const RequestKey& key);
  /// Asks the router to end the request, once: a client may say it as often as it likes.
  void cancel(OpenRequest& request);

  /// Sends, or closes the client when it is gone. `ends` names a message that ends a request: it is
  /// kept for a client that does not read.
  void send(ClientId client, const wire::FromRouter& message, bool ends);
  /// To a peer that need not be a client.
  void answer(const std::string& identity, const wire::FromRouter& message);

  /// Every client hears something, so that those that are gone are found, and those that read again
  /// are told how their requests ended.
  void keep_alive();
  void cancel_all();
  /// Forgets the client when nothing of it is open.
  void close_if_idle(ClientId client);

 private:
  Status try_send(const std::string& identity, const wire::FromRouter& message);
  void lose(ClientId client, const std::string& reason);
  void overrun(Client& client);
  void settle(ClientId id, Client& client);

  net::Socket& socket_;
  Service& service_;
  wire::Encoder encoder_;
  std::unordered_map<ClientId, Client> clients_;
  std::unordered_map<std::string, ClientId> by_identity_;
  ClientId next_client_ = 1;
  std::size_t num_requests_ = 0;
};

}  // namespace brigade::router
