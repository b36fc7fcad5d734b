// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/load_generator.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "tools/bench/load_connection.h"
#include "tools/tls_client.h"

namespace brigade::tools {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr Duration kProgressInterval = std::chrono::milliseconds(200);
/// When a refusal names no time.
constexpr double kRetryAfterS = 1;

/// One workload from its first request to its last.
class Run final {
 public:
  Run(asio::io_context& io, LoadTarget& target, std::vector<std::shared_ptr<LoadConnection>>& idle,
      Workload& workload, const LoadOptions& options, Recorder& recorder)
      : io_(io),
        target_(target),
        idle_(idle),
        workload_(workload),
        options_(options),
        recorder_(recorder),
        due_timer_(io),
        end_timer_(io),
        progress_timer_(io),
        signals_(io, SIGINT, SIGTERM) {}

  bool go() {
    target_.timeout = options_.timeout;
    target_.start = Clock::now();
    signals_.async_wait([this](const error_code& error, int) {
      if (!error) interrupt();
    });
    if (options_.duration_s) {
      end_timer_.expires_after(std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(*options_.duration_s)));
      end_timer_.async_wait([this](const error_code& error) {
        if (!error) stop();
      });
    }
    if (options_.on_progress) show_progress();
    next_ = workload_.next();
    pump();
    io_.restart();
    io_.run();
    return !interrupted_;
  }

 private:
  struct Slot {
    PlannedRequest request;
    std::uint32_t refusals = 0;
    std::shared_ptr<LoadConnection> connection;  ///< null while it waits to try again
    std::shared_ptr<asio::steady_timer> retry;
  };

  [[nodiscard]] double now_s() const {
    return std::chrono::duration<double>(Clock::now() - target_.start).count();
  }

  /// Starts what is due and has room, and arms the timer for what comes next.
  void pump() {
    while (next_ && !stopping_ && slots_.size() < options_.concurrency) {
      const double now = now_s();
      if (workload_.open_loop() && next_->due_s > now) break;
      if (!workload_.open_loop()) next_->due_s = now;
      const std::uint64_t id = next_id_++;
      slots_[id].request = *next_;
      next_ = workload_.next();
      send(id);
    }
    if (slots_.empty() && (stopping_ || !next_)) return finish();
    if (next_ && !stopping_ && slots_.size() < options_.concurrency) wait_until_due();
  }

  void wait_until_due() {
    due_timer_.expires_at(target_.start + std::chrono::duration_cast<Duration>(
                                              std::chrono::duration<double>(next_->due_s)));
    due_timer_.async_wait([this](const error_code& error) {
      if (!error) pump();
    });
  }

  void send(std::uint64_t id) {
    Slot& slot = slots_.at(id);
    if (idle_.empty()) {
      slot.connection = std::make_shared<LoadConnection>(io_, target_);
    } else {
      slot.connection = std::move(idle_.back());
      idle_.pop_back();
    }
    const bool retry = slot.refusals > 0;
    LoadRequest request{.bytes = options_.make_request(slot.request),
                        .due_s = retry ? now_s() : slot.request.due_s,
                        .abandon_after = slot.request.abandon_after};
    recorder_.on_start(now_s());
    slot.connection->start(
        std::move(request),
        {.on_tokens =
             [this](double at_s, std::optional<double> gap_s, std::uint32_t num_tokens) {
               recorder_.on_tokens(at_s, gap_s, num_tokens);
             },
         .on_end =
             [this, id, retry](const Outcome& outcome, bool reusable) {
               recorder_.on_end(outcome, retry);
               asio::post(io_, [this, id, outcome, reusable] { on_end(id, outcome, reusable); });
             }});
  }

  void on_end(std::uint64_t id, const Outcome& outcome, bool reusable) {
    Slot& slot = slots_.at(id);
    if (reusable) idle_.push_back(std::move(slot.connection));
    slot.connection = nullptr;
    const bool again =
        outcome.end == Outcome::End::kRefused && !stopping_ && slot.refusals++ < options_.retries;
    if (again) {
      slot.retry = std::make_shared<asio::steady_timer>(io_);
      slot.retry->expires_after(std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(outcome.retry_after_s.value_or(kRetryAfterS))));
      slot.retry->async_wait([this, id](const error_code& error) {
        if (!error) send(id);
      });
      return;
    }
    slots_.erase(id);
    ++ended_;
    pump();
  }

  /// Starts nothing any more.
  void stop() {
    stopping_ = true;
    due_timer_.cancel();
    std::erase_if(slots_, [](const auto& entry) {
      const bool waits = entry.second.connection == nullptr;
      if (waits && entry.second.retry) entry.second.retry->cancel();
      return waits;
    });
    if (slots_.empty()) finish();
  }

  void interrupt() {
    interrupted_ = true;
    // From now on a signal ends the process.
    signals_.clear();
    std::vector<std::shared_ptr<LoadConnection>> running;
    for (const auto& [id, slot] : slots_) {
      if (slot.connection) running.push_back(slot.connection);
    }
    stop();
    for (const auto& connection : running)
      connection->cut();
  }

  void finish() {
    due_timer_.cancel();
    end_timer_.cancel();
    progress_timer_.cancel();
    signals_.cancel();
    io_.stop();
  }

  void show_progress() {
    options_.on_progress({.elapsed_s = now_s(), .in_flight = slots_.size(), .ended = ended_});
    progress_timer_.expires_after(kProgressInterval);
    progress_timer_.async_wait([this](const error_code& error) {
      if (!error) show_progress();
    });
  }

  asio::io_context& io_;
  LoadTarget& target_;
  std::vector<std::shared_ptr<LoadConnection>>& idle_;
  Workload& workload_;
  const LoadOptions& options_;
  Recorder& recorder_;
  asio::steady_timer due_timer_;
  asio::steady_timer end_timer_;
  asio::steady_timer progress_timer_;
  asio::signal_set signals_;
  std::optional<PlannedRequest> next_;
  std::unordered_map<std::uint64_t, Slot> slots_;
  std::uint64_t next_id_ = 0;
  std::uint64_t ended_ = 0;
  bool stopping_ = false;
  bool interrupted_ = false;
};

}  // namespace

struct LoadGenerator::Impl {
  asio::io_context io{1};
  std::optional<asio::ssl::context> tls;
  LoadTarget target;
  std::vector<std::shared_ptr<LoadConnection>> idle;
};

LoadGenerator::LoadGenerator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LoadGenerator::~LoadGenerator() = default;

Result<std::unique_ptr<LoadGenerator>> LoadGenerator::make(const HttpAddress& address) {
  auto impl = std::make_unique<Impl>();
  impl->target.address = address;
  error_code error;
  asio::ip::tcp::resolver resolver(impl->io);
  impl->target.endpoints = resolver.resolve(address.host, address.port, error);
  if (error) return unavailable(str_cat(address.url(), ": resolve: ", error.message()));
  if (address.tls) {
    impl->tls.emplace(asio::ssl::context::tls_client);
    RETURN_IF_ERROR(load_issuers(*impl->tls, address));
    impl->target.tls = &*impl->tls;
  }
  return std::unique_ptr<LoadGenerator>(new LoadGenerator(std::move(impl)));
}

bool LoadGenerator::run(Workload& workload, const LoadOptions& options, Recorder& recorder) {
  Run run(impl_->io, impl_->target, impl_->idle, workload, options, recorder);
  const bool whole = run.go();
  // Handlers that still wait point into the run.
  impl_->io.restart();
  impl_->io.poll();
  return whole;
}

}  // namespace brigade::tools
