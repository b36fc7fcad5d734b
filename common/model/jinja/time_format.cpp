// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/time_format.h"

#include <chrono>
#include <cstdio>

namespace brigade::model::jinja {
namespace {

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

struct Fields {
  int year;
  unsigned month;  // 1 to 12
  unsigned day;    // 1 to 31
  unsigned weekday;
  int year_day;  // 1 to 366
  int hour;
  int minute;
  int second;
};

Fields fields_of(std::int64_t seconds) {
  namespace chrono = std::chrono;
  // Years -32767 to 32767 are what the calendar types hold.
  constexpr std::int64_t kLimit = std::int64_t{9000} * 366 * 86400;
  const chrono::seconds time(seconds > kLimit ? kLimit : seconds < -kLimit ? -kLimit : seconds);
  const auto days = chrono::floor<chrono::days>(chrono::sys_seconds(time));
  const chrono::year_month_day date(days);
  const chrono::hh_mm_ss clock(chrono::sys_seconds(time) - days);
  const chrono::sys_days new_year(date.year() / chrono::January / 1);
  return {.year = static_cast<int>(date.year()),
          .month = static_cast<unsigned>(date.month()),
          .day = static_cast<unsigned>(date.day()),
          .weekday = chrono::weekday(days).c_encoding(),
          .year_day = static_cast<int>((days - new_year).count()) + 1,
          .hour = static_cast<int>(clock.hours().count()),
          .minute = static_cast<int>(clock.minutes().count()),
          .second = static_cast<int>(clock.seconds().count())};
}

std::string padded(int value, int width, char pad) {
  std::string digits = std::to_string(value);
  if (pad == '-' || static_cast<int>(digits.size()) >= width) return digits;
  return std::string(static_cast<std::size_t>(width) - digits.size(), pad) + digits;
}

/// Empty for a letter that is not known.
std::string format_field(const Fields& time, char letter, bool no_padding) {
  const char zero = no_padding ? '-' : '0';
  switch (letter) {
    case 'a':
      return std::string(kDays[time.weekday].substr(0, 3));
    case 'A':
      return std::string(kDays[time.weekday]);
    case 'b':
      return std::string(kMonths[time.month - 1].substr(0, 3));
    case 'B':
      return std::string(kMonths[time.month - 1]);
    case 'd':
      return padded(static_cast<int>(time.day), 2, zero);
    case 'e':
      return padded(static_cast<int>(time.day), 2, no_padding ? '-' : ' ');
    case 'H':
      return padded(time.hour, 2, zero);
    case 'I':
      return padded((time.hour + 11) % 12 + 1, 2, zero);
    case 'j':
      return padded(time.year_day, 3, zero);
    case 'm':
      return padded(static_cast<int>(time.month), 2, zero);
    case 'M':
      return padded(time.minute, 2, zero);
    case 'p':
      return time.hour < 12 ? "AM" : "PM";
    case 'S':
      return padded(time.second, 2, zero);
    case 'y':
      return padded((time.year % 100 + 100) % 100, 2, zero);
    case 'Y':
      return padded(time.year, 4, zero);
    case '%':
      return "%";
    default:
      return {};
  }
}

}  // namespace

std::string format_time(std::int64_t seconds, std::string_view format) {
  const Fields time = fields_of(seconds);
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    const bool no_padding = format[i + 1] == '-' && i + 2 < format.size();
    const std::size_t letter = no_padding ? i + 2 : i + 1;
    const std::string field = format_field(time, format[letter], no_padding);
    out += field.empty() ? std::string(format.substr(i, letter - i + 1)) : field;
    i = letter;
  }
  return out;
}

}  // namespace brigade::model::jinja
