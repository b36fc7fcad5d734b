// SPDX-License-Identifier: Apache-2.0
#include "common/base/file_watch.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <filesystem>

#include "common/base/files.h"

using namespace brigade;

namespace {

bool readable(const FileWatch& watch, int patience_ms) {
  pollfd waiting{.fd = watch.fd(), .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, patience_ms) > 0;
}

}  // namespace

TEST_CASE("a change of a watched file is seen, also by a link and when it comes new") {
  std::string folder = std::filesystem::temp_directory_path() / "brigade-watch-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string plain = folder + "/keys.toml";
  const std::string link = folder + "/tls.pem";
  REQUIRE(replace_file(plain, "1", 0600).ok());
  REQUIRE(replace_file(folder + "/tls.1", "1", 0600).ok());
  std::filesystem::create_symlink("tls.1", link);
  FileWatch watch({plain, link, folder + "/later.pem"});
  CHECK_FALSE(readable(watch, 0));

  REQUIRE(replace_file(plain, "2", 0600).ok());
  CHECK(readable(watch, 2000));
  CHECK(watch.changed());
  CHECK_FALSE(watch.changed());

  REQUIRE(replace_file(folder + "/another", "1", 0600).ok());
  CHECK(readable(watch, 2000));
  CHECK_FALSE(watch.changed());

  REQUIRE(replace_file(folder + "/tls.2", "22", 0600).ok());
  std::filesystem::create_symlink("tls.2", folder + "/new");
  std::filesystem::rename(folder + "/new", link);
  CHECK(readable(watch, 2000));
  CHECK(watch.changed());

  REQUIRE(replace_file(folder + "/later.pem", "1", 0600).ok());
  CHECK(readable(watch, 2000));
  CHECK(watch.changed());
  std::filesystem::remove_all(folder);
  CHECK(FileWatch({}).fd() == -1);
}

TEST_CASE("a file is read up to its bound, and replaced whole") {
  std::string folder = std::filesystem::temp_directory_path() / "brigade-files-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/text";
  CHECK(read_file(path, 10).status().code() == StatusCode::kNotFound);
  REQUIRE(replace_file(path, "0123456789", 0600).ok());
  CHECK(read_file(path, 10).value() == "0123456789");
  CHECK(read_file(path, 9).status().code() == StatusCode::kInvalidArgument);
  REQUIRE(replace_file(path, "new", 0600).ok());
  CHECK(read_file(path, 9).value() == "new");
  CHECK_FALSE(replace_file(folder + "/no/such", "x", 0600).ok());
  std::filesystem::remove_all(folder);
}
