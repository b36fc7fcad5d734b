// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"

/// How the programs of one user on one machine find each other: a router writes what it offers into
/// the runtime folder and removes it when it ends.
namespace brigade::config {

/// One running router, the content of `router-PID.json`.
struct RouterRecord {
  std::int64_t pid = 0;
  /// Of /proc/PID/stat: tells the router from a later process with its pid.
  std::uint64_t process_start = 0;
  std::string http;   ///< URL; empty when it has no HTTP door
  std::string admin;  ///< URL of status and drain; may be the same
  /// An API key for this user's own commands, with every scope, of this run alone; empty when no
  /// keys are asked for. The folder is the user's alone.
  std::string api_key;
  std::string socket;                ///< endpoint for clients
  std::vector<std::string> workers;  ///< endpoints for workers, ipc first
  std::vector<std::string> models;   ///< names
  std::int64_t started_unix = 0;     ///< seconds

  friend bool operator==(const RouterRecord&, const RouterRecord&) = default;
};

/// `wanted`, or $XDG_RUNTIME_DIR/brigade, or /tmp/brigade-UID. Made with mode 0700 when missing;
/// refused (kPermissionDenied) when it belongs to someone else, is a link, or is open to others:
/// sockets in it have no keys.
[[nodiscard]] Result<std::string> runtime_folder(const std::string& wanted = "");

/// Writes the record whole or not at all. `pid` and `process_start` are filled in for this process.
[[nodiscard]] Status write_record(const std::string& folder, RouterRecord record);
/// Removes this process's record; nothing when there is none.
void remove_record(const std::string& folder);

/// The running routers, oldest first. Records of processes that have ended are removed, malformed
/// ones skipped.
[[nodiscard]] std::vector<RouterRecord> read_records(const std::string& folder);

}  // namespace brigade::config
