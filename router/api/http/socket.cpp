// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/socket.h"

#include <utility>

namespace brigade::router {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class PlainSocket final : public ClientSocket {
 public:
  explicit PlainSocket(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {
    error_code ec;
    socket_.non_blocking(true, ec);
  }

  void async_handshake(Handler handler) override { handler(error_code(), 0); }
  void async_read_some(asio::mutable_buffer buffer, Handler handler) override {
    socket_.async_read_some(buffer, std::move(handler));
  }
  std::size_t write_now(asio::const_buffer buffer) override {
    error_code ec;
    return socket_.non_blocking() ? socket_.write_some(buffer, ec) : 0;
  }
  void async_write_some(asio::const_buffer buffer, Handler handler) override {
    socket_.async_write_some(buffer, std::move(handler));
  }
  void async_shut_down_send(Handler handler) override {
    error_code ec;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ec);
    handler(ec, 0);
  }
  asio::ip::tcp::socket& tcp() override { return socket_; }

 private:
  asio::ip::tcp::socket socket_;
};

}  // namespace

void ClientSocket::close() {
  error_code ec;
  tcp().close(ec);
}

std::unique_ptr<ClientSocket> plain_socket(asio::ip::tcp::socket socket) {
  return std::make_unique<PlainSocket>(std::move(socket));
}

}  // namespace brigade::router
