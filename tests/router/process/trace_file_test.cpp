// SPDX-License-Identifier: Apache-2.0
#include "router/process/trace_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/log.h"

namespace brigade::router {
namespace {

namespace fs = std::filesystem;

std::string write_lines(const fs::path& path, TraceFile::Limits limits, int count) {
  {
    auto file = TraceFile::open(path.string(), limits);
    REQUIRE(file.ok());
    for (int i = 0; i < count; ++i)
      (*file)->write("{\"cancel\":7}");
  }
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a trace file holds every line, and only its owner may read it") {
  const fs::path path = fs::temp_directory_path() / "brigade-trace-test.jsonl";
  const std::string text = write_lines(path, {}, 1000);
  CHECK_EQ(text.size(), 13'000);
  CHECK_EQ(text.substr(0, 13), "{\"cancel\":7}\n");
  struct stat status {};
  REQUIRE_EQ(stat(path.c_str(), &status), 0);
  CHECK_EQ(status.st_mode & 0777, 0600);
  fs::remove(path);
}

TEST_CASE("a trace that is full ends with a line that says so") {
  init_log("test", LogLevel::kError);
  const fs::path path = fs::temp_directory_path() / "brigade-trace-test-full.jsonl";
  const std::string text = write_lines(path, {.max_bytes = 100}, 1000);
  CHECK_EQ(text.substr(0, 7 * 13).find("end"), std::string::npos);
  CHECK_EQ(text.substr(7 * 13), "{\"end\":\"it has reached its bound of 100 bytes\"}\n");
  fs::remove(path);
}

TEST_CASE("a trace that cannot be written is refused with its path") {
  const auto file = TraceFile::open("/no/such/folder/trace", {});
  REQUIRE_FALSE(file.ok());
  CHECK_NE(file.status().message().find("/no/such/folder/trace"), std::string::npos);
}

}  // namespace brigade::router
