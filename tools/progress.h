// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace brigade::tools {

/// `head[#######.......] tail`, at most `width` columns; without the bar where there is no room.
[[nodiscard]] std::string progress_bar(const std::string& head, double fraction,
                                       const std::string& tail, std::size_t width);

/// Of the terminal that standard error goes to; 80 when it is none.
[[nodiscard]] std::size_t terminal_width();

}  // namespace brigade::tools
