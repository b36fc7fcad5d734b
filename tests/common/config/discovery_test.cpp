// SPDX-License-Identifier: Apache-2.0
#include "common/config/discovery.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace brigade::config {
namespace {

struct TemporaryFolder {
  std::string path;
  TemporaryFolder() {
    path = std::filesystem::temp_directory_path() / "brigade-discovery-XXXXXX";
    REQUIRE(mkdtemp(path.data()) != nullptr);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("a router's record is found while it lives and gone when it is removed") {
  TemporaryFolder folder;
  const RouterRecord record = {.http = "http://127.0.0.1:8000",
                               .admin = "http://127.0.0.1:8002",
                               .api_key = "brg_x",
                               .socket = "tcp://127.0.0.1:9",
                               .workers = {"ipc:///a \"b\"", "tcp://127.0.0.1:10"},
                               .models = {"smollm2"},
                               .started_unix = 123};
  REQUIRE(write_record(folder.path, record).ok());
  auto records = read_records(folder.path);
  REQUIRE(records.size() == 1);
  CHECK(records[0].pid == getpid());
  CHECK(records[0].process_start != 0);
  records[0].pid = record.pid;
  records[0].process_start = record.process_start;
  CHECK(records[0] == record);
  remove_record(folder.path);
  CHECK(read_records(folder.path).empty());
}

TEST_CASE("records of processes that have ended, or whose pid is another's now, are removed") {
  TemporaryFolder folder;
  const std::string rest =
      R"(,"http":"","admin":"","api_key":"","socket":"","workers":[],"models":[],"started_unix":1})";
  const std::string dead = folder.path + "/router-1.json";
  // The first process of the machine did not start at tick 1.
  std::ofstream(dead) << R"({"pid":1,"process_start":1)" << rest;
  const std::string gone = folder.path + "/router-4194304.json";
  std::ofstream(gone) << R"({"pid":4194304,"process_start":5)" << rest;
  CHECK(read_records(folder.path).empty());
  CHECK_FALSE(std::filesystem::exists(dead));
  CHECK_FALSE(std::filesystem::exists(gone));
}

TEST_CASE("malformed records are skipped") {
  TemporaryFolder folder;
  for (const char* text : {"", "{", "[]", "{\"pid\":\"x\"}", "null"}) {
    std::ofstream(folder.path + "/router-7.json") << text;
    CHECK(read_records(folder.path).empty());
  }
  CHECK(read_records(folder.path + "/none").empty());
}

TEST_CASE("a runtime folder that others could use is refused") {
  TemporaryFolder folder;
  const std::string mine = folder.path + "/run";
  CHECK(runtime_folder(mine).value() == mine);
  struct stat info {};
  REQUIRE(stat(mine.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
  CHECK(runtime_folder(mine).ok());
  chmod(mine.c_str(), 0755);
  CHECK(runtime_folder(mine).status().code() == StatusCode::kPermissionDenied);
  chmod(mine.c_str(), 0700);
  const std::string link = folder.path + "/link";
  std::filesystem::create_symlink(mine, link);
  CHECK(runtime_folder(link).status().code() == StatusCode::kPermissionDenied);
  CHECK(runtime_folder(folder.path + "/a/b").status().code() == StatusCode::kUnavailable);
}

}  // namespace brigade::config
