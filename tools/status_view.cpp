// SPDX-License-Identifier: Apache-2.0
#include "tools/status_view.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "common/base/strings.h"
#include "tools/progress.h"

namespace brigade::tools {
namespace {

namespace json = boost::json;

/// Members of an object, or nothing at all of what is not one.
class Members {
 public:
  explicit Members(const json::value& value) : object_(value.if_object()) {}

  [[nodiscard]] const json::value& at(std::string_view name) const {
    static const json::value kNull;
    const json::value* found = object_ == nullptr ? nullptr : object_->if_contains(name);
    return found == nullptr ? kNull : *found;
  }
  [[nodiscard]] std::string text(std::string_view name) const {
    const json::string* found = at(name).if_string();
    return found == nullptr ? std::string() : std::string(found->data(), found->size());
  }
  [[nodiscard]] double number(std::string_view name) const {
    boost::system::error_code error;
    const double found = at(name).to_number<double>(error);
    return error ? 0.0 : found;
  }
  [[nodiscard]] std::int64_t integer(std::string_view name) const {
    boost::system::error_code error;
    const auto found = at(name).to_number<std::int64_t>(error);
    return error ? 0 : found;
  }
  template <typename Visit>
  void each(std::string_view name, Visit visit) const {
    if (const json::array* items = at(name).if_array()) {
      for (const json::value& item : *items)
        visit(item);
    }
  }

 private:
  const json::object* object_;
};

RankView parse_rank(const json::value& value) {
  const Members members(value);
  RankView rank{.worker = members.text("worker"),
                .pid = members.integer("pid"),
                .state = members.text("state"),
                .tp_rank = members.integer("tp_rank"),
                .pp_stage = members.integer("pp_stage"),
                .layers = {},
                .load_fraction = members.number("load_fraction"),
                .busy_fraction = members.number("busy_fraction"),
                .bubble_fraction = members.number("bubble_fraction")};
  const json::array* layers = members.at("layers").if_array();
  if (layers != nullptr && layers->size() == 2) {
    boost::system::error_code error;
    rank.layers.begin = (*layers)[0].to_number<std::int64_t>(error);
    rank.layers.end = (*layers)[1].to_number<std::int64_t>(error);
  }
  return rank;
}

ReplicaView parse_replica(const json::value& value) {
  const Members members(value);
  const Members blocks(members.at("kv_blocks"));
  ReplicaView replica{.id = members.integer("id"),
                      .model = members.text("model"),
                      .state = members.text("state"),
                      .kv_total = blocks.integer("total"),
                      .kv_used = blocks.integer("used"),
                      .kv_cached = blocks.integer("cached"),
                      .running = members.integer("running"),
                      .ranks = {}};
  members.each("ranks",
               [&](const json::value& rank) { replica.ranks.push_back(parse_rank(rank)); });
  return replica;
}

/// Three columns and the sign: " 87 %".
std::string percent(double fraction) {
  std::ostringstream out;
  out << std::setw(3) << std::lround(100 * fraction) << " %";
  return out.str();
}

}  // namespace

double ReplicaView::load_fraction() const {
  if (state == "ready" || state == "draining") return 1.0;
  double sum = 0;
  for (const RankView& rank : ranks)
    sum += std::clamp(rank.load_fraction, 0.0, 1.0);
  return ranks.empty() ? 0.0 : sum / static_cast<double>(ranks.size());
}

std::int64_t StatusView::num_ready() const {
  return std::count_if(replicas.begin(), replicas.end(),
                       [](const ReplicaView& replica) { return replica.state == "ready"; });
}

Result<StatusView> parse_status(std::string_view text) {
  boost::system::error_code error;
  const json::value root = json::parse(text, error);
  if (error) return data_loss(str_cat("the router's status is not JSON: ", error.message()));
  const Members members(root);
  const Members queue(members.at("queue"));
  StatusView status{.replicas = {},
                    .idle_workers = members.integer("idle_workers"),
                    .queued_requests = queue.integer("requests"),
                    .queued_tokens = queue.integer("tokens")};
  members.each("replicas", [&](const json::value& replica) {
    status.replicas.push_back(parse_replica(replica));
  });
  return status;
}

std::string render_status(const StatusView& status) {
  std::ostringstream out;
  for (const ReplicaView& replica : status.replicas) {
    out << "replica " << replica.id << "  " << replica.model << "  " << replica.state << "  "
        << replica.running << " running  KV blocks " << replica.kv_used << " used, "
        << replica.kv_cached << " cached of " << replica.kv_total << "\n";
    for (const RankView& rank : replica.ranks) {
      out << "  stage " << rank.pp_stage << "  rank " << rank.tp_rank << "  layers "
          << rank.layers.begin << "-" << rank.layers.end - 1 << "  " << std::left << std::setw(8)
          << rank.state << "  busy " << std::right << percent(rank.busy_fraction) << "  bubble "
          << percent(rank.bubble_fraction) << "  " << rank.worker << "  pid " << rank.pid << "\n";
    }
  }
  if (status.replicas.empty()) out << "no replica yet\n";
  out << "queue      " << status.queued_requests << " requests, " << status.queued_tokens
      << " tokens\n";
  if (status.idle_workers > 0) out << "standing by  " << status.idle_workers << " workers\n";
  return out.str();
}

std::string render_progress(const StatusView& status, std::int64_t num_replicas,
                            std::size_t width) {
  double sum = 0;
  for (const ReplicaView& replica : status.replicas)
    sum += replica.load_fraction();
  const double fraction =
      std::min(1.0, sum / static_cast<double>(std::max<std::int64_t>(1, num_replicas)));
  std::ostringstream tail;
  tail << percent(fraction) << "  " << status.num_ready() << " of " << num_replicas
       << (num_replicas == 1 ? " replica" : " replicas") << " ready";
  return progress_bar("loading ", fraction, tail.str(), width);
}

}  // namespace brigade::tools
