// SPDX-License-Identifier: Apache-2.0
#include "tools/sse.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace brigade::tools {
namespace {

std::vector<SseEvent> read_in_pieces(std::string_view bytes, std::size_t piece) {
  SseReader reader;
  std::vector<SseEvent> events;
  for (std::size_t i = 0; i < bytes.size(); i += piece) {
    const Status status = reader.push(bytes.substr(i, piece),
                                      [&](const SseEvent& event) { events.push_back(event); });
    CHECK(status.ok());
  }
  return events;
}

}  // namespace

TEST_CASE("events are the same however the stream is cut, with every kind of line end") {
  const std::string_view bytes =
      "data: one\n\n: a comment\nevent: error\r\ndata:two\r\n\r\ndata: a\rdata: b\r\r"
      "event: none\n\nid: 7\ndata:  spaced\n\ndata: not ended\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    CAPTURE(piece);
    const auto events = read_in_pieces(bytes, piece);
    REQUIRE(events.size() == 4);
    CHECK(events[0].data == "one");
    CHECK(events[0].event.empty());
    CHECK(events[1].event == "error");
    CHECK(events[1].data == "two");
    CHECK(events[2].data == "a\nb");
    CHECK(events[3].data == " spaced");
    CHECK(events[3].event.empty());
  }
}

TEST_CASE("an event without end is refused at the bound") {
  SseReader reader(/*max_event_bytes=*/100);
  const auto ignore = [](const SseEvent&) {};
  CHECK(reader.push("data: " + std::string(90, 'x'), ignore).ok());
  CHECK(reader.push(std::string(10, 'x'), ignore).code() == StatusCode::kDataLoss);
}

}  // namespace brigade::tools
