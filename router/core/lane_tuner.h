// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/time.h"

namespace brigade::router {

/// How many lanes a replica needs for its stages to be busy. P are enough while links and the way
/// to the router are short beside a step; else the last stage reports waits, and more lanes, of
/// fewer sequences each, are tried. They are kept when stages are then busier and the replica gives
/// no fewer tokens: more steps have more room for prompts.
///
/// With too few sequences for more lanes, the last stage's steps tell whether the way to the router
/// holds them up: they then come in bunches, as many as were in flight, with a gap in between.
/// More steps of each sequence in flight close it; they are tried and kept in the same way.
///
/// Judges windows of steps: one to look, some to settle after a change, one to compare. A try that
/// gains nothing is taken back, and the next one waits twice as long.
class LaneTuner final {
 public:
  struct Step {
    std::uint32_t compute_us = 0;  ///< of the last stage
    std::uint32_t wait_us = 0;
    std::uint32_t num_samples = 0;
    TimePoint ended;
  };
  LaneTuner(std::uint32_t num_stages, std::uint32_t max_lanes)
      : num_stages_(num_stages), max_lanes_(max_lanes), num_lanes_(num_stages) {}

  /// Notes the end of a step while `num_sequences` run here. Returns the lanes there should be.
  std::uint32_t on_step(const Step& step, std::uint32_t num_sequences);
  /// Nothing runs here any more: what was learnt of the traffic is void.
  void reset();

  [[nodiscard]] std::uint32_t num_lanes() const { return num_lanes_; }
  /// Steps that may be in flight, where two a lane are fewer.
  [[nodiscard]] std::uint32_t num_steps_ahead() const { return num_steps_ahead_; }

 private:
  enum class Phase : std::uint8_t { kLooking, kSettling, kComparing };
  /// Of a window of steps.
  struct Window {
    double rate = 0;  ///< tokens a second
    double busy = 0;
    double gaps = 0;  ///< mean time between steps over the least
  };
  void end_window(const Window& window, std::uint32_t num_sequences);
  [[nodiscard]] bool start_try(const Window& window, std::uint32_t num_sequences);

  std::uint32_t num_stages_;
  std::uint32_t max_lanes_;
  std::uint32_t num_lanes_;
  Phase phase_ = Phase::kLooking;
  std::uint32_t num_steps_ahead_ = 0;
  std::uint32_t lanes_before_ = 0;  ///< the try
  std::uint32_t ahead_before_ = 0;
  Window before_;
  std::uint32_t windows_to_wait_ = 0;
  std::uint32_t next_wait_ = 1;

  std::uint32_t num_steps_ = 0;  ///< of the window
  std::uint64_t compute_us_ = 0;
  std::uint64_t wait_us_ = 0;
  std::uint64_t num_samples_ = 0;
  std::uint64_t least_us_ = 0;  ///< from the end of a step to the end of the next
  TimePoint began_ = TimePoint::min();
};

}  // namespace brigade::router
