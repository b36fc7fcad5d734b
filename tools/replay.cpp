// SPDX-License-Identifier: Apache-2.0
#include "tools/replay.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>

#include "common/base/overloaded.h"
#include "common/base/strings.h"
#include "router/replay/replay.h"

namespace brigade::tools {
namespace {

using namespace router;  // NOLINT: this file is about the router's types

/// What became of one request, and how long it waited for what.
struct Story {
  std::size_t num_prompt = 0;
  std::string tenant;
  TimePoint submitted;
  std::optional<TimePoint> placed;
  std::optional<TimePoint> first_token;
  std::uint32_t num_placements = 0;
  std::map<WaitReason, Duration> waits;
  std::optional<WaitReason> waits_for;  ///< since `since`; nothing when it does not wait
  TimePoint since;
  std::string end;
};

double ms(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::string_view word(wire::FinishReason finish) {
  switch (finish) {
    case wire::FinishReason::kStop:
      return "stop";
    case wire::FinishReason::kLength:
      return "length";
    case wire::FinishReason::kCancelled:
      return "cancelled";
    case wire::FinishReason::kError:
      return "error";
    case wire::FinishReason::kNone:
      break;
  }
  return "";
}

/// Follows a replay: prints its lines when asked to, and keeps the requests' stories.
class Narrator final {
 public:
  explicit Narrator(const ReplayOptions& options) : options_(options) {}

  void on_line(const TraceLine& line, const Replay& replay) {
    now_ = replay.now();
    if (!start_) start_ = now_;
    std::visit(
        Overloaded{[&](const Request& e) { submit(e); }, [&](const CancelLine& e) { cancel(e); },
                   [&](const MessageLine& e) { message(e); },
                   [&](const WorkerLostLine& e) {
                     say(str_cat("worker ", e.worker, " is lost: ", e.reason));
                   },
                   [&](const DrainLine& e) { say(str_cat("drain replica ", e.replica)); },
                   [&](const CloseLine&) { say("close"); },
                   [&](const AdvanceLine&) { say("time passes"); },
                   [&](const EndLine& e) { say("the trace was cut off: " + e.reason); },
                   [&](const Actions& e) { actions(e); }},
        line);
    if (!std::holds_alternative<Actions>(line)) look(replay.router());
  }

  void print_summary() const;

 private:
  void say(const std::string& text, RequestId request = 0) const {
    if (!options_.steps || (options_.request != 0 && options_.request != request)) return;
    std::printf("%12.3f ms  %s\n", ms(now_ - *start_), text.c_str());
  }

  void submit(const Request& request) {
    stories_[request.id] = {.num_prompt = request.prompt.size(),
                            .tenant = request.tenant,
                            .submitted = now_,
                            .since = now_};
    say(str_cat("request ", request.id, " comes: tenant ", quoted(request.tenant), ", ",
                request.prompt.size(), " tokens"),
        request.id);
  }

  void cancel(const CancelLine& line) const {
    say(str_cat("request ", line.request, " is cancelled"), line.request);
  }

  void message(const MessageLine& line) const {
    const auto* result = std::get_if<wire::StepResult>(&line.message);
    if (result == nullptr) {
      say(str_cat("worker ", line.worker, ": ", name_of(line.message)));
    } else {
      say(str_cat("step ", result->step, " of epoch ", result->epoch, " has ended"));
    }
  }

  /// Where each request is after an event.
  void look(const Router& router) {
    owners_.clear();
    for (const RequestView& view : router.requests()) {
      Story& story = stories_[view.id];
      if (view.placed) owners_[{view.replica, view.slot}] = view.id;
      const std::optional<WaitReason> waits_for =
          view.placed ? std::nullopt : std::optional(view.waits_for);
      if (waits_for == story.waits_for && (!view.placed || story.placed)) continue;
      settle(story);
      story.waits_for = waits_for;
      if (view.placed) {
        if (!story.placed) story.placed = now_;
        ++story.num_placements;
        say(str_cat("request ", view.id, " goes to replica ", view.replica, ", slot ", view.slot),
            view.id);
      } else {
        say(str_cat("request ", view.id, " waits for: ", to_string(view.waits_for)), view.id);
      }
    }
  }

  void settle(Story& story) const {
    if (story.waits_for) story.waits[*story.waits_for] += now_ - story.since;
    story.since = now_;
  }

  void actions(const Actions& actions) {
    std::optional<std::pair<std::uint64_t, std::uint64_t>> last;
    for (const SendToWorker& send : actions.sends) {
      if (const auto* assign = std::get_if<wire::Assign>(&send.message)) {
        replicas_[assign->epoch] = assign->replica;
      }
      const auto* command = std::get_if<wire::StepCommand>(&send.message);
      if (command == nullptr) {
        say(str_cat("  to worker ", send.worker, ": ", name_of(send.message)));
      } else if (last != std::pair(command->epoch, command->step)) {
        last = {command->epoch, command->step};
        step(*command);
      }
    }
    for (const Output& output : actions.outputs)
      on_output(output);
  }

  void step(const wire::StepCommand& command) {
    ++num_steps_;
    num_tokens_ += command.tokens.size();
    if (!options_.steps) return;
    const ReplicaId replica = replicas_[command.epoch];
    std::string text =
        str_cat("  step ", command.step, " of replica ", replica, ", lane ", command.lane, ":");
    bool concerned = options_.request == 0;
    for (std::size_t i = 0; i < command.num_seqs(); ++i) {
      const auto owner = owners_.find({replica, command.seq[i]});
      const RequestId request = owner == owners_.end() ? 0 : owner->second;
      concerned |= request == options_.request;
      const std::uint32_t count = command.cu_tokens[i + 1] - command.cu_tokens[i];
      text += request == 0 ? str_cat(" slot ", command.seq[i]) : str_cat(" request ", request);
      text += str_cat('[', command.position[i], "..", command.position[i] + count, ')');
    }
    if (concerned) say(text, options_.request);
  }

  void on_output(const Output& output) {
    Story& story = stories_[output.request];
    if (!output.tokens.empty() && !story.first_token) story.first_token = now_;
    if (output.finish == wire::FinishReason::kNone) return;
    settle(story);
    story.waits_for.reset();
    story.end = word(output.finish);
    if (!output.status.ok()) story.end += ": " + output.status.message();
    say(str_cat("  request ", output.request, " ends: ", story.end), output.request);
  }

  const ReplayOptions& options_;
  std::optional<TimePoint> start_;
  TimePoint now_;
  std::map<RequestId, Story> stories_;
  std::map<std::pair<ReplicaId, std::uint32_t>, RequestId> owners_;  ///< by replica and slot
  std::map<std::uint64_t, ReplicaId> replicas_;                      ///< by epoch
  std::uint64_t num_steps_ = 0;
  std::uint64_t num_tokens_ = 0;
};

void Narrator::print_summary() const {
  std::printf("%8s %-12s %7s %9s %9s  %-40s %s\n", "request", "tenant", "prompt", "queued", "first",
              "waited for (ms)", "end");
  std::map<WaitReason, Duration> total;
  for (const auto& [id, story] : stories_) {
    std::string waits;
    for (const auto& [reason, time] : story.waits) {
      total[reason] += time;
      if (time < std::chrono::microseconds(1)) continue;
      char text[64];
      std::snprintf(text, sizeof text, "%s%s %.1f", waits.empty() ? "" : ", ",
                    std::string(to_string(reason)).c_str(), ms(time));
      waits += text;
    }
    if (options_.request != 0 && id != options_.request) continue;
    const auto since = [&](const std::optional<TimePoint>& time) {
      return time ? ms(*time - story.submitted) : -1.0;
    };
    std::printf("%8llu %-12.12s %7zu %9.1f %9.1f  %-40s %s\n", static_cast<unsigned long long>(id),
                story.tenant.c_str(), story.num_prompt, since(story.placed),
                since(story.first_token), waits.c_str(), story.end.c_str());
  }
  std::printf(
      "\n%zu requests, %llu steps, %llu tokens in them; waits of all together:", stories_.size(),
      static_cast<unsigned long long>(num_steps_), static_cast<unsigned long long>(num_tokens_));
  for (const auto& [reason, time] : total) {
    std::printf(" %s %.1f ms", std::string(to_string(reason)).c_str(), ms(time));
  }
  std::printf("\nthe core decided the same, to the byte\n");
}

}  // namespace

Status replay(const ReplayOptions& options) {
  std::ifstream file(options.file);
  std::string line;
  if (!file || !std::getline(file, line)) {
    return not_found(str_cat("cannot read a trace from ", quoted(options.file, 200)));
  }
  const auto header = read_trace_header(line);
  if (!header.ok()) return header.status().with_context(options.file + ":1");
  ASSIGN_OR_RETURN(auto models, load_traced_models(*header, options.models));
  Replay replay(*header, std::move(models));
  Narrator narrator(options);
  bool cut_off = false;
  std::size_t number = 1;
  for (; !cut_off && std::getline(file, line); ++number) {
    // A router that was killed leaves half a line.
    if (file.eof() && !line.ends_with('}')) break;
    const auto applied = replay.apply(line);
    if (!applied.ok()) {
      return applied.status().with_context(str_cat(options.file, ":", number + 1));
    }
    narrator.on_line(*applied, replay);
    cut_off = std::holds_alternative<EndLine>(*applied);
  }
  if (!cut_off) RETURN_IF_ERROR(replay.finish().with_context(options.file));
  narrator.print_summary();
  return {};
}

}  // namespace brigade::tools
