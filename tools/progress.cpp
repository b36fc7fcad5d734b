// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "common/base/strings.h"

namespace brigade::tools {

std::string progress_bar(const std::string& head, double fraction, const std::string& tail,
                         std::size_t width) {
  const std::size_t fixed = head.size() + 3 + tail.size();
  if (width < fixed + 8) return (head + tail).substr(0, width);
  const std::size_t bar = std::min<std::size_t>(width - fixed, 40);
  const auto full = static_cast<std::size_t>(
      std::lround(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(bar)));
  return str_cat(head, "[", std::string(full, '#'), std::string(bar - full, '.'), "] ", tail);
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace brigade::tools
