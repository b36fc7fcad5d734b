// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::model::jinja {

/// A string that knows of each byte whether the template or a message wrote it. Bytes are what is
/// counted here; every string operation of the language is made of append and slice, so that marks
/// follow the bytes wherever they go.
class Text final {
 public:
  /// Bytes of one origin: from the end of the run before to `end`.
  struct Run {
    std::size_t end;
    bool trusted;
  };

  Text() = default;
  Text(std::string_view bytes, bool trusted) { append(bytes, trusted); }

  [[nodiscard]] const std::string& str() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] const std::vector<Run>& runs() const {
    return runs_;
  }  ///< ascending, neighbours differ
  /// Requires pos < size().
  [[nodiscard]] bool trusted_at(std::size_t pos) const { return run_of(pos)->trusted; }

  void append(std::string_view bytes, bool trusted);
  void append(const Text& other) { append(other, 0, other.size()); }
  /// Bytes [begin, end) of `other`, which is not this.
  void append(const Text& other, std::size_t begin, std::size_t end);
  [[nodiscard]] Text slice(std::size_t begin, std::size_t end) const;

 private:
  [[nodiscard]] std::vector<Run>::const_iterator run_of(std::size_t pos) const;

  std::string bytes_;
  std::vector<Run> runs_;
};

}  // namespace brigade::model::jinja
