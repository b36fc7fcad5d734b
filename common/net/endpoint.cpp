// SPDX-License-Identifier: Apache-2.0
#include "common/net/endpoint.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <optional>

#include "common/base/strings.h"

namespace brigade::net {
namespace {

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kIpc = "ipc://";
constexpr std::string_view kInproc = "inproc://";
constexpr std::size_t kMaxIpcPath = 107;  // sockaddr_un::sun_path less its end

struct HostPort {
  std::string host;  ///< without brackets
  std::string port;
};

std::optional<HostPort> split_tcp(std::string_view endpoint) {
  std::string_view rest = endpoint.substr(kTcp.size());
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  std::string_view host = rest.substr(0, colon);
  const std::string_view port = rest.substr(colon + 1);
  if (host.front() == '[') {
    if (host.back() != ']') return std::nullopt;
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;
  }
  return HostPort{std::string(host), std::string(port)};
}

bool is_port(std::string_view text) {
  if (text == "*") return true;
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port <= 65535;
}

/// The source address of a UDP socket joined to `there`: the kernel's choice of route; nothing is
/// sent.
std::optional<std::string> local_address(const addrinfo& there) {
  const int fd = socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  char host[NI_MAXHOST];
  const bool known = connect(fd, there.ai_addr, there.ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
                     getnameinfo(reinterpret_cast<sockaddr*>(&own), size, host, sizeof host,
                                 nullptr, 0, NI_NUMERICHOST) == 0;
  close(fd);
  if (!known) return std::nullopt;
  return there.ai_family == AF_INET6 ? str_cat('[', host, ']') : std::string(host);
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return v6.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

}  // namespace

bool is_local_endpoint(std::string_view endpoint) {
  if (endpoint.starts_with(kIpc) || endpoint.starts_with(kInproc)) return true;
  if (!endpoint.starts_with(kTcp)) return false;
  const auto tcp = split_tcp(endpoint);
  return tcp && is_loopback(tcp->host);
}

Status check_endpoint(std::string_view endpoint) {
  if (endpoint.starts_with(kIpc)) {
    const std::size_t length = endpoint.size() - kIpc.size();
    if (length == 0 || length > kMaxIpcPath) {
      return invalid_argument(str_cat("endpoint ", quoted(endpoint, 200), ": an ipc path has 1 to ",
                                      kMaxIpcPath, " bytes, this one ", length));
    }
    return {};
  }
  if (endpoint.starts_with(kInproc) && endpoint.size() > kInproc.size()) return {};
  if (endpoint.starts_with(kTcp)) {
    const auto tcp = split_tcp(endpoint);
    if (tcp && !tcp->host.empty() && is_port(tcp->port)) return {};
  }
  return invalid_argument(str_cat("endpoint ", quoted(endpoint, 200),
                                  " is not tcp://HOST:PORT, tcp://[IPV6]:PORT or ipc://PATH"));
}

std::string address_towards(std::string_view endpoint) {
  constexpr const char* kLoopback = "127.0.0.1";
  if (!endpoint.starts_with(kTcp)) return kLoopback;
  const auto tcp = split_tcp(endpoint);
  const addrinfo hints{.ai_socktype = SOCK_DGRAM};
  addrinfo* found = nullptr;
  if (!tcp || getaddrinfo(tcp->host.c_str(), tcp->port.c_str(), &hints, &found) != 0) {
    return kLoopback;
  }
  std::optional<std::string> address;
  for (const addrinfo* there = found; there != nullptr && !address; there = there->ai_next)
    address = local_address(*there);
  freeaddrinfo(found);
  return address.value_or(kLoopback);
}

std::string plain_endpoint(std::string_view endpoint) {
  if (!endpoint.starts_with(kTcp)) return std::string(endpoint);
  const auto tcp = split_tcp(endpoint);
  constexpr std::string_view kMapped = "::ffff:";
  if (!tcp || !tcp->host.starts_with(kMapped)) return std::string(endpoint);
  return str_cat(kTcp, tcp->host.substr(kMapped.size()), ":", tcp->port);
}

}  // namespace brigade::net
