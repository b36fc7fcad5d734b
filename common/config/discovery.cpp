// SPDX-License-Identifier: Apache-2.0
#include "common/config/discovery.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "common/base/files.h"
#include "common/base/strings.h"

namespace brigade::config {
namespace {

namespace json = boost::json;

constexpr std::string_view kPrefix = "router-";
constexpr std::string_view kSuffix = ".json";
constexpr std::size_t kMaxRecordBytes = 64 << 10;

std::string record_path(const std::string& folder, std::int64_t pid) {
  return str_cat(folder, "/", kPrefix, pid, kSuffix);
}

/// Field 22 of /proc/PID/stat, in clock ticks since boot; nothing when there is no such process.
/// The second field, a name in parentheses, may hold anything: count from its end.
std::optional<std::uint64_t> process_start(std::int64_t pid) {
  std::ifstream file(str_cat("/proc/", pid, "/stat"));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) {
    if (!(fields >> field)) return std::nullopt;
  }
  std::uint64_t ticks = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), ticks);
  return error == std::errc() ? std::optional(ticks) : std::nullopt;
}

json::array to_json(const std::vector<std::string>& texts) {
  json::array array;
  for (const std::string& text : texts)
    array.emplace_back(text);
  return array;
}

std::vector<std::string> to_texts(const json::value& value) {
  std::vector<std::string> texts;
  for (const json::value& item : value.as_array())
    texts.emplace_back(item.as_string());
  return texts;
}

std::optional<RouterRecord> parse_record(const std::string& path) {
  std::ifstream file(path);
  std::string text(kMaxRecordBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  try {
    const json::value root = json::parse(text);
    return RouterRecord{.pid = root.at("pid").to_number<std::int64_t>(),
                        .process_start = root.at("process_start").to_number<std::uint64_t>(),
                        .http = std::string(root.at("http").as_string()),
                        .admin = std::string(root.at("admin").as_string()),
                        .api_key = std::string(root.at("api_key").as_string()),
                        .socket = std::string(root.at("socket").as_string()),
                        .workers = to_texts(root.at("workers")),
                        .models = to_texts(root.at("models")),
                        .started_unix = root.at("started_unix").to_number<std::int64_t>()};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

Status check_folder(const std::string& folder) {
  struct stat info {};
  if (lstat(folder.c_str(), &info) != 0) {
    return unavailable(str_cat("runtime folder ", quoted(folder, 200), ": ", strerror(errno)));
  }
  const auto denied = [&](std::string_view what) {
    return Status(StatusCode::kPermissionDenied,
                  str_cat("runtime folder ", quoted(folder, 200), " ", what,
                          ": choose another by --runtime-dir"));
  };
  if (!S_ISDIR(info.st_mode)) return denied("is not a folder");
  if (info.st_uid != geteuid()) return denied("belongs to another user");
  if ((info.st_mode & 077) != 0)
    return denied("is open to others than its owner (mode 0700 wanted)");
  return {};
}

std::string default_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') return str_cat(runtime, "/brigade");
  return str_cat("/tmp/brigade-", geteuid());
}

}  // namespace

Result<std::string> runtime_folder(const std::string& wanted) {
  const std::string folder = wanted.empty() ? default_folder() : wanted;
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return unavailable(
        str_cat("cannot make runtime folder ", quoted(folder, 200), ": ", strerror(errno)));
  }
  RETURN_IF_ERROR(check_folder(folder));
  return folder;
}

Status write_record(const std::string& folder, RouterRecord record) {
  record.pid = getpid();
  record.process_start = process_start(record.pid).value_or(0);
  const json::object object = {{"pid", record.pid},
                               {"process_start", record.process_start},
                               {"http", record.http},
                               {"admin", record.admin},
                               {"api_key", record.api_key},
                               {"socket", record.socket},
                               {"workers", to_json(record.workers)},
                               {"models", to_json(record.models)},
                               {"started_unix", record.started_unix}};
  return replace_file(record_path(folder, record.pid), json::serialize(object) + '\n', 0600);
}

void remove_record(const std::string& folder) {
  unlink(record_path(folder, getpid()).c_str());
}

std::vector<RouterRecord> read_records(const std::string& folder) {
  std::vector<RouterRecord> records;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    auto record = parse_record(entry.path());
    if (!record) continue;
    if (process_start(record->pid) == record->process_start) {
      records.push_back(std::move(*record));
    } else {
      unlink(entry.path().c_str());
    }
  }
  std::ranges::sort(records, [](const RouterRecord& a, const RouterRecord& b) {
    return std::pair(a.started_unix, a.pid) < std::pair(b.started_unix, b.pid);
  });
  return records;
}

}  // namespace brigade::config
