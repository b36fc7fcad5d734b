// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/admin.h"

#include <string_view>

#include "router/api/http/json_write.h"

namespace brigade::router {
namespace {

void append_rank(std::string& out, const RankStatus& rank) {
  ObjectWriter object(out);
  object.text("worker", rank.worker);
  object.number("pid", rank.pid);
  object.text("host", rank.host);
  object.text("state", rank.state);
  object.number("tp_rank", rank.tp_rank);
  object.number("pp_stage", rank.pp_stage);
  object.key("layers");
  out += '[' + std::to_string(rank.layers.begin) + ',' + std::to_string(rank.layers.end) + ']';
  object.number("load_fraction", rank.load_fraction);
  object.number("busy_fraction", rank.busy_fraction);
  object.number("bubble_fraction", rank.bubble_fraction);
  object.end();
}

void append_replica(std::string& out, const ReplicaStatus& replica) {
  ObjectWriter object(out);
  object.number("id", replica.id);
  object.text("model", replica.model);
  object.text("state", replica.state);
  object.number("epoch", replica.epoch);
  object.number("running", replica.running);
  object.number("steps", replica.steps);
  object.key("kv_blocks");
  ObjectWriter blocks(out);
  blocks.number("total", replica.kv_total);
  blocks.number("used", replica.kv_used);
  blocks.number("cached", replica.kv_cached);
  blocks.end();
  object.key("ranks");
  append_json_list(out, replica.ranks, append_rank);
  object.end();
}

void append_bucket(std::string& out, const BucketStatus& bucket) {
  ObjectWriter object(out);
  object.number("max_tokens", bucket.max_tokens);
  object.number("requests", bucket.requests);
  object.end();
}

}  // namespace

std::string model_json(const ServedModel& model, std::int64_t created_s) {
  std::string out;
  ObjectWriter object(out);
  object.text("id", model.name);
  object.text("object", "model");
  object.number("created", created_s);
  object.text("owned_by", "brigade");
  object.text("root", model.name);
  object.key("parent");
  out += "null";
  object.number("max_model_len", model.max_context);
  object.end();
  return out;
}

std::string status_json(const RouterStatus& status) {
  std::string out;
  ObjectWriter object(out);
  object.key("replicas");
  append_json_list(out, status.replicas, append_replica);
  object.key("queue");
  ObjectWriter queue(out);
  queue.number("requests", status.queued_requests);
  queue.number("tokens", status.queued_tokens);
  queue.key("buckets");
  append_json_list(out, status.buckets, append_bucket);
  queue.end();
  object.number("idle_workers", status.idle_workers);
  object.key("requests");
  ObjectWriter requests(out);
  requests.number("accepted", status.accepted);
  requests.number("completed", status.completed);
  requests.number("failed", status.failed);
  requests.number("cancelled", status.cancelled);
  requests.number("refused", status.refused);
  requests.number("in_flight", status.in_flight);
  requests.end();
  object.number("generated_tokens", status.generated_tokens);
  object.number("preempted", status.preempted);
  object.number("failed_over", status.failed_over);
  object.end();
  return out;
}

}  // namespace brigade::router
