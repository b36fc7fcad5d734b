// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/time.h"

namespace brigade::worker {

/// What the command line of brigade-worker says, defaults filled in.
struct WorkerOptions {
  std::string router;     ///< endpoint: tcp://HOST:PORT or ipc://PATH
  std::string keys_file;  ///< CURVE keys (net::load_keys); empty: the router asks for none
  std::string name;       ///< for people
  std::string device = "cpu";
  int num_threads = 1;
  bool pin = false;
  int first_cpu = 0;
  bool spin = false;
  std::uint64_t memory_bytes = 0;     ///< weights and KV together
  std::uint64_t kv_memory_bytes = 0;  ///< KV alone; 0: what the weights leave
  std::string runtime_dir;            ///< of the ipc socket; empty: as config::runtime_folder
  /// Address where peers reach the stage link's tcp port; empty: with keys this host's on the way
  /// to the router, else the loopback.
  std::string bind;
  std::optional<pid_t> expected_parent;
  Duration give_up_after = Duration::zero();  ///< without a router; zero: never
};

}  // namespace brigade::worker
