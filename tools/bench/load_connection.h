// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/time.h"
#include "tools/bench/answer_reader.h"
#include "tools/bench/recorder.h"
#include "tools/http_client.h"

namespace brigade::tools {

/// Where all connections of a run go.
struct LoadTarget {
  HttpAddress address;
  boost::asio::ip::tcp::resolver::results_type endpoints;
  boost::asio::ssl::context* tls = nullptr;  ///< with its issuers; null: plain
  Duration timeout{};                        ///< of a request, connecting included
  TimePoint start;                           ///< that times are after
};

struct LoadRequest {
  std::string bytes;  ///< HTTP, whole
  double due_s = 0;
  std::optional<std::uint32_t> abandon_after;  ///< tokens
};

/// A connection that carries one streamed request at a time and is kept for the next one. All on
/// the thread of its io_context.
class LoadConnection final : public std::enable_shared_from_this<LoadConnection> {
 public:
  struct Listener {
    /// See Recorder::on_tokens.
    std::function<void(double at_s, std::optional<double> gap_s, std::uint32_t num_tokens)>
        on_tokens;
    /// The request is over. The connection can take another one when `reusable`; it must not be
    /// started from here.
    std::function<void(const Outcome&, bool reusable)> on_end;
  };

  LoadConnection(boost::asio::io_context& io, const LoadTarget& target);

  void start(LoadRequest request, Listener listener);
  /// Ends the request that runs, as Outcome::End::kCut.
  void cut();

 private:
  using Parser = boost::beast::http::response_parser<boost::beast::http::string_body>;
  using Error = boost::system::error_code;

  void connect();
  void handshake();
  void write();
  void read();
  void on_read(const Error& error, std::size_t size);
  bool take_input(TimePoint now);
  void take_body(TimePoint now);
  void on_tokens(TimePoint now, std::uint32_t num_tokens);
  void on_whole_answer();
  void on_timer();
  void fail(std::string kind);
  void end(Outcome::End how);
  [[nodiscard]] double seconds(TimePoint at) const;

  const LoadTarget& target_;
  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  boost::asio::steady_timer timer_;
  bool connected_ = false;
  bool fresh_ = false;  ///< nothing has been answered on it yet
  /// Counts requests, so that a handler of one that is over is told apart.
  std::uint64_t generation_ = 0;

  bool running_ = false;
  LoadRequest request_;
  Listener listener_;
  Outcome outcome_;
  std::optional<Parser> parser_;
  std::optional<AnswerReader> answer_;
  std::array<char, 8192> chunk_{};
  std::string input_;  ///< read, not yet parsed
  std::string error_body_;
};

}  // namespace brigade::tools
