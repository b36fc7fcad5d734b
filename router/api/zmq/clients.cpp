// SPDX-License-Identifier: Apache-2.0
#include "router/api/zmq/clients.h"

#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"

namespace brigade::router {
namespace {

/// In place of what a client that did not read has missed.
wire::FromRouter missed(const wire::FromRouter& ending) {
  const std::uint64_t request = std::visit(
      [](const auto& m) -> std::uint64_t {
        if constexpr (requires { m.request; }) return m.request;
        return 0;
      },
      ending);
  return wire::Refused{
      .request = request,
      .status = resource_exhausted("the answer was not read fast enough: part of it is lost"),
      .retry_after_s = 1};
}

}  // namespace

ClientId Clients::open(const std::string& identity) {
  const auto [it, added] = by_identity_.try_emplace(identity, next_client_);
  if (added) {
    clients_[next_client_].identity = identity;
    ++next_client_;
  }
  return it->second;
}

Client* Clients::find(ClientId client) {
  const auto it = clients_.find(client);
  return it == clients_.end() ? nullptr : &it->second;
}

OpenRequest* Clients::find(const RequestKey& key) {
  Client* client = find(key.client);
  if (client == nullptr) return nullptr;
  const auto it = client->requests.find(key.request);
  if (it == client->requests.end() || it->second.serial != key.serial) return nullptr;
  return &it->second;
}

void Clients::add(ClientId client, std::uint64_t request, OpenRequest open) {
  clients_.at(client).requests[request] = std::move(open);
  ++num_requests_;
}

void Clients::end(const RequestKey& key) {
  if (find(key) == nullptr) return;
  clients_.at(key.client).requests.erase(key.request);
  --num_requests_;
  close_if_idle(key.client);
}

void Clients::close_if_idle(ClientId client) {
  const auto it = clients_.find(client);
  if (it == clients_.end()) return;
  const Client& of = it->second;
  if (!of.requests.empty() || !of.owed.empty() || of.num_awaited > 0) return;
  by_identity_.erase(it->second.identity);
  clients_.erase(it);
}

Status Clients::try_send(const std::string& identity, const wire::FromRouter& message) {
  std::vector<net::Frame> frames;
  frames.emplace_back(encoder_.encode(message));
  return socket_.send_to(identity, std::move(frames));
}

void Clients::answer(const std::string& identity, const wire::FromRouter& message) {
  const Status status = try_send(identity, message);
  if (!status.ok()) log_debug(str_cat("no answer to ", quoted(identity), ": ", status.message()));
}

void Clients::send(ClientId id, const wire::FromRouter& message, bool ends) {
  Client* client = find(id);
  if (client == nullptr) return;
  if (!client->overrun) {
    const Status status = try_send(client->identity, message);
    if (status.ok()) return;
    if (status.code() != StatusCode::kResourceExhausted) return lose(id, status.message());
    overrun(*client);
  }
  if (ends) client->owed.push_back(missed(message));
}

void Clients::lose(ClientId id, const std::string& reason) {
  const auto it = clients_.find(id);
  log_info(str_cat("client ", id, " is gone with ", it->second.requests.size(),
                   " requests open: ", reason));
  for (auto& [number, request] : it->second.requests)
    cancel(request);
  num_requests_ -= it->second.requests.size();
  by_identity_.erase(it->second.identity);
  clients_.erase(it);
}

void Clients::overrun(Client& client) {
  log_warning(str_cat("a client does not read: ", client.requests.size(), " requests end"));
  client.overrun = true;
  for (auto& [number, request] : client.requests)
    cancel(request);
}

void Clients::cancel(OpenRequest& request) {
  if (std::exchange(request.cancelled, true)) return;
  if (request.id != 0) service_.cancel(request.id);
}

void Clients::keep_alive() {
  std::vector<ClientId> ids;
  for (const auto& [id, client] : clients_)
    ids.push_back(id);
  for (const ClientId id : ids) {
    Client& client = clients_.at(id);
    if (client.overrun) {
      settle(id, client);
    } else {
      send(id, wire::KeepAlive{}, /*ends=*/false);
    }
  }
}

void Clients::settle(ClientId id, Client& client) {
  std::size_t sent = 0;
  Status status;
  while (sent < client.owed.size() && status.ok()) {
    status = try_send(client.identity, client.owed[sent]);
    if (status.ok()) ++sent;
  }
  client.owed.erase(client.owed.begin(), client.owed.begin() + static_cast<std::ptrdiff_t>(sent));
  if (status.code() == StatusCode::kUnavailable) return lose(id, status.message());
  close_if_idle(id);
}

void Clients::cancel_all() {
  for (auto& [id, client] : clients_) {
    for (auto& [number, request] : client.requests)
      cancel(request);
  }
}

}  // namespace brigade::router
