// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <variant>

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/strings.h"
#include "common/wire/build_info.h"
#include "shard_worker/process/guardian.h"
#include "shard_worker/process/worker.h"

namespace brigade::worker {
namespace {

constexpr const char* kDescription =
    "One rank of a replica: joins a router, is given layers of a model and a place in a grid of\n"
    "workers, and computes. The router's address is all it needs; it waits for the router, and "
    "joins\n"
    "again when the router was away.\n\n"
    "  brigade-worker --router tcp://127.0.0.1:7070\n"
    "  brigade-worker --router 127.0.0.1:7070 --threads 8 --memory 12GiB\n"
    "  brigade-worker --router ipc:///run/brigade/router.sock --device sim\n\n"
    "It ends when the router has drained it, and on SIGTERM or SIGINT.\n";

int num_allowed_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

std::string default_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return str_cat(host.data(), '-', getpid());
}

void declare_place(CLI::App& app, WorkerOptions& options, double& give_up_after_s) {
  app.add_option("--router", options.router,
                 "Where the router listens for workers: tcp://HOST:PORT, HOST:PORT or ipc://PATH")
      ->required();
  app.add_option("--keys", options.keys_file,
                 "File with this worker's keys and the router's, where the router asks for them")
      ->check(CLI::ExistingFile);
  app.add_option("--name", options.name, "What people call this worker [HOST-PID]");
  app.add_option("--runtime-dir", options.runtime_dir,
                 "Directory of the local socket that other workers of this host send to "
                 "[$XDG_RUNTIME_DIR/brigade, else /tmp/brigade-UID]");
  app.add_option(
      "--bind", options.bind,
      "Address of this host that workers of other hosts reach; the port is chosen freely "
      "and told to the router [with --keys this host's address on the way to the "
      "router, else 127.0.0.1]");
  app.add_option("--expected-parent", options.expected_parent,
                 "Process id that started this worker: when it is gone, the worker ends");
  app.add_option("--give-up-after", give_up_after_s,
                 "End after this many seconds without a router [never]")
      ->check(CLI::Range(0.001, 1e9));
}

void declare_device(CLI::App& app, WorkerOptions& options) {
  app.add_option("--device", options.device,
                 "cpu; or sim, which holds no weights and sleeps as long as the router's cost "
                 "model says")
      ->check(CLI::IsMember({"cpu", "sim"}))
      ->capture_default_str();
  app.add_option("--threads", options.num_threads, "Compute threads [one for each CPU allowed]")
      ->check(CLI::Range(1, 1024));
  app.add_option("--memory", options.memory_bytes,
                 "What weights and KV cache may take together, such as 512MiB or 12GiB [a quarter "
                 "of what this machine has available: room for other workers]")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app.add_option("--kv-memory", options.kv_memory_bytes,
                 "What the KV cache takes, whatever the weights take [what they leave of --memory]")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  app.add_flag(
      "--pin", options.pin,
      "Pin each thread to a CPU of its own, from --first-cpu on; workers that share a host "
      "each need their own CPUs");
  app.add_option("--first-cpu", options.first_cpu,
                 "With --pin: the first of the allowed CPUs to use")
      ->check(CLI::Range(0, 4095));
  app.add_flag("--spin", options.spin,
               "Wait by spinning for about 50 us before sleeping. Only where every thread of every "
               "worker on this host has a core to itself: else it is many times slower");
}

/// The options, or the exit status with which to end: help and errors have been printed.
std::variant<WorkerOptions, int> parse_options(int argc, char** argv) {
  WorkerOptions options;
  options.name = default_name();
  options.num_threads = num_allowed_cpus();
  double give_up_after_s = 0;
  CLI::App app(kDescription, "brigade-worker");
  app.set_version_flag("--version", std::string(wire::build_id()));
  declare_place(app, options, give_up_after_s);
  declare_device(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (options.router.find("://") == std::string::npos) options.router = "tcp://" + options.router;
  if (options.memory_bytes == 0) options.memory_bytes = available_memory() / 4;
  options.give_up_after =
      std::chrono::milliseconds(static_cast<std::int64_t>(give_up_after_s * 1000));
  return options;
}

std::unique_ptr<Engine> make_engine(const WorkerOptions& options) {
  if (options.device == "sim") return make_sim_engine();
  return make_cpu_engine({.num_threads = options.num_threads,
                          .pin = options.pin,
                          .first_cpu = options.first_cpu,
                          .spin = options.spin});
}

int run(const WorkerOptions& options) {
  auto worker = Worker::make(options, make_engine(options));
  if (!worker.ok()) {
    log_error(worker.status().message());
    return 1;
  }
  // The guardian outlives the worker, to cut short an end that hangs: it must not touch one that is
  // gone.
  std::mutex mutex;
  bool serving = true;
  const Guardian guardian({.expected_parent = options.expected_parent,
                           .on_stop =
                               [&](const std::string& reason) {
                                 std::lock_guard lock(mutex);
                                 if (serving) (*worker)->stop(reason);
                               },
                           .last_words = [path = (*worker)->ipc_path()] { unlink(path.c_str()); }});
  const std::string reason = (*worker)->run();
  log_info(str_cat("leaves: ", reason));
  {
    std::lock_guard lock(mutex);
    serving = false;
  }
  worker->reset();
  return 0;
}

}  // namespace
}  // namespace brigade::worker

int main(int argc, char** argv) {
  brigade::worker::block_stop_signals();
  const auto parsed = brigade::worker::parse_options(argc, argv);
  if (const int* status = std::get_if<int>(&parsed)) return *status;
  const auto& options = std::get<brigade::worker::WorkerOptions>(parsed);
  brigade::init_log(options.name);
  return brigade::worker::run(options);
}
