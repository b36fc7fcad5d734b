// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <functional>
#include <memory>

namespace brigade::router {

/// The bytes of one client, with TLS around them or without. I/O thread only; one read and one
/// write may be pending at a time. A handler is called after close() too, with an error.
class ClientSocket {
 public:
  using Handler = std::function<void(const boost::system::error_code&, std::size_t)>;

  virtual ~ClientSocket() = default;
  /// Comes first, once; no bytes are counted.
  virtual void async_handshake(Handler handler) = 0;
  virtual void async_read_some(boost::asio::mutable_buffer buffer, Handler handler) = 0;
  /// Bytes that could be handed over at once; 0 also where that is not possible or has failed:
  /// async_write_some() tells.
  virtual std::size_t write_now(boost::asio::const_buffer buffer) = 0;
  virtual void async_write_some(boost::asio::const_buffer buffer, Handler handler) = 0;
  /// Tells the client that nothing more will come; it may go on sending. The handler keeps alive
  /// what must be, and tells nothing.
  virtual void async_shut_down_send(Handler handler) = 0;
  void close();

  [[nodiscard]] virtual boost::asio::ip::tcp::socket& tcp() = 0;
};

[[nodiscard]] std::unique_ptr<ClientSocket> plain_socket(boost::asio::ip::tcp::socket socket);

}  // namespace brigade::router
