// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/time.h"

namespace brigade::testing {

/// An answer taken apart. `body` is without chunk framing; `chunks` has each chunk.
struct HttpAnswer {
  int status = 0;  ///< 0: nothing that is HTTP came
  std::string reason;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  std::vector<std::string> chunks;
  bool complete = false;  ///< the body ended as its framing says
};

/// A raw TCP client on 127.0.0.1: sends exactly what it is told, and reads what comes.
class HttpClient final {
 public:
  /// `address` is host:port. With `receive_buffer` the kernel's receive buffer is made small.
  explicit HttpClient(const std::string& address, int receive_buffer = 0);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// False when the server has closed.
  bool send(std::string_view bytes);
  void half_close();
  /// Closes with a reset instead of an orderly end.
  void reset();
  void close();

  /// The next answer, whole or as far as it came before the end or the time was over.
  HttpAnswer receive(Duration patience = std::chrono::seconds(3), bool to_head = false);
  /// Reads on until `text` has come; false at the end or when the time is over. What was read stays
  /// for receive().
  bool receive_until(std::string_view text, Duration patience = std::chrono::seconds(3));
  /// Whether the server closes within the time. What comes before is thrown away.
  bool closed(Duration patience = std::chrono::seconds(3));
  /// All bytes read and not yet taken by receive().
  [[nodiscard]] const std::string& unread() const { return input_; }

 private:
  bool read_more(TimePoint deadline);

  int socket_ = -1;
  std::string input_;
};

/// A request with a JSON body.
std::string post(std::string_view path, std::string_view body, std::string_view extra_headers = "");
std::string get(std::string_view path, std::string_view method = "GET");
/// One request on a connection of its own.
HttpAnswer ask(const std::string& address, std::string_view request);

}  // namespace brigade::testing
