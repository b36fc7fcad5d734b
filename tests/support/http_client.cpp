// SPDX-License-Identifier: Apache-2.0
#include "tests/support/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace brigade::testing {
namespace {

/// Takes chunks from the front of `input`; true when the last one has come.
bool take_chunks(std::string& input, HttpAnswer& answer) {
  while (true) {
    const std::size_t eol = input.find("\r\n");
    if (eol == std::string::npos) return false;
    const std::size_t size = std::stoul(input.substr(0, eol), nullptr, 16);
    if (input.size() < eol + 2 + size + 2) return false;
    const std::string data = input.substr(eol + 2, size);
    input.erase(0, eol + 2 + size + 2);
    if (size == 0) return true;
    answer.body += data;
    answer.chunks.push_back(data);
  }
}

void parse_head(std::string_view head, HttpAnswer& answer) {
  const std::size_t eol = head.find("\r\n");
  if (!head.starts_with("HTTP/1.") || eol < 12) return;
  answer.status = std::stoi(std::string(head.substr(9, 3)));
  answer.reason = head.substr(13, eol - 13);
  head.remove_prefix(eol + 2);
  while (!head.empty()) {
    const std::size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    const std::size_t colon = line.find(": ");
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    answer.headers[name] = line.substr(colon + 2);
    head.remove_prefix(end + 2);
  }
}

}  // namespace

HttpClient::HttpClient(const std::string& address, int receive_buffer) {
  const std::size_t colon = address.rfind(':');
  socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  INVARIANT_GE(socket_, 0);
  if (receive_buffer > 0) {
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  }
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &peer.sin_addr);
  INVARIANT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&peer), sizeof(peer)), 0);
}

HttpClient::~HttpClient() {
  close();
}

bool HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void HttpClient::half_close() {
  ::shutdown(socket_, SHUT_WR);
}

void HttpClient::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close();
}

void HttpClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

bool HttpClient::read_more(TimePoint deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
  if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) <= 0) return false;
  char buffer[16384];
  const ssize_t got = ::recv(socket_, buffer, sizeof(buffer), 0);
  if (got <= 0) return false;
  input_.append(buffer, static_cast<std::size_t>(got));
  return true;
}

bool HttpClient::receive_until(std::string_view text, Duration patience) {
  const TimePoint deadline = Clock::now() + patience;
  while (input_.find(text) == std::string::npos) {
    if (!read_more(deadline)) return false;
  }
  return true;
}

HttpAnswer HttpClient::receive(Duration patience, bool to_head) {
  HttpAnswer answer;
  const TimePoint deadline = Clock::now() + patience;
  if (!receive_until("\r\n\r\n", patience)) return answer;
  const std::size_t end = input_.find("\r\n\r\n");
  parse_head(std::string_view(input_).substr(0, end + 2), answer);
  input_.erase(0, end + 4);
  if (to_head) {
    answer.complete = true;
  } else if (answer.headers.contains("transfer-encoding")) {
    while (!(answer.complete = take_chunks(input_, answer)) && read_more(deadline)) {
    }
  } else {
    const auto length = answer.headers.find("content-length");
    const bool known = length != answer.headers.end();
    const std::size_t size = known ? std::stoul(length->second) : static_cast<std::size_t>(-1);
    while (input_.size() < size && read_more(deadline)) {
    }
    answer.complete = !known || input_.size() >= size;
    answer.body = input_.substr(0, size);
    input_.erase(0, answer.body.size());
  }
  return answer;
}

bool HttpClient::closed(Duration patience) {
  const TimePoint deadline = Clock::now() + patience;
  while (read_more(deadline))
    input_.clear();
  return Clock::now() < deadline;
}

std::string post(std::string_view path, std::string_view body, std::string_view extra_headers) {
  return str_cat("POST ", path,
                 " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
                 extra_headers, "Content-Length: ", body.size(), "\r\n\r\n", body);
}

std::string get(std::string_view path, std::string_view method) {
  return str_cat(method, " ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

HttpAnswer ask(const std::string& address, std::string_view request) {
  HttpClient client(address);
  client.send(request);
  return client.receive();
}

}  // namespace brigade::testing
