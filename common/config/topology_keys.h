// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "common/config/topology.h"

namespace brigade::config {

/// One key of a topology file: how it is written (tables by dots), what it means, and the range of
/// a number.
struct Key {
  std::string_view name;
  std::string_view help;
  double min = 0;
  double max = 1e15;
};

template <typename Enum>
constexpr auto enum_values() {
  return std::array{static_cast<Enum>(0), static_cast<Enum>(1)};
}

/// One section of visit_keys each, in the order of configs/reference.toml.
namespace keys {

constexpr double kMaxU32 = 4294967295.0;

template <typename Visitor>
void visit_grid_and_doors(Topology& t, Visitor& visit) {
  visit(Key{"model",
            "Path of the model, a GGUF file. Empty: the one that tools/fetch-model put in place."},
        t.model);
  visit(Key{"tp", "Tensor-parallel ranks of each stage (at most the model's number of heads).", 1,
            1024},
        t.tp);
  visit(
      Key{"pp", "Pipeline stages of each replica (at most the model's number of layers).", 1, 1024},
      t.pp);
  visit(Key{"dp", "Replicas. tp x pp x dp workers are started.", 1, 1024}, t.dp);
  visit(Key{"device",
            "\"cpu\" computes; \"sim\" only takes the time that [sim] says, and holds no weights."},
        t.device);
  visit(Key{"threads", "Threads of each worker.", 1, 1024}, t.threads);
  visit(Key{"activations", "\"int8\" with quantised weights, or \"float\": slower, for checking."},
        t.activations);
  visit(Key{"kv", "How keys and values are kept: \"f16\" or \"f32\"."}, t.kv);
  visit(Key{"prefix_cache",
            "Keeps the KV of requests that have ended for later ones of the same tenant that begin "
            "alike."},
        t.prefix_cache);
  visit(Key{"http", "HOST:PORT of the OpenAI-compatible API; port 0 picks a free one."}, t.http);
  visit(Key{"allow_remote_http",
            "Lets http listen where other machines reach it without both api.keys and TLS."},
        t.allow_remote_http);
  visit(Key{"socket", "ZeroMQ endpoint of the client socket; port 0 picks a free one."}, t.socket);
  visit(Key{"worker_socket",
            "ZeroMQ endpoint that workers connect to. Empty: an ipc file, for this host alone."},
        t.worker_socket);
  visit(Key{"trace",
            "File for the router's decision trace (prompts are in it), for `brigade replay`. "
            "Empty: none."},
        t.trace);
}

template <typename Visitor>
void visit_limits(Topology& t, Visitor& visit) {
  visit(Key{"limits.step_tokens", "Tokens of one step: decodes first, then prefill chunks.", 1,
            65536},
        t.limits.step_tokens);
  visit(Key{"limits.max_seqs", "Sequences running at once on a replica.", 1, 65536},
        t.limits.max_seqs);
  visit(Key{"limits.max_kv_blocks", "KV blocks (16 tokens each) of a replica; 0: as many as fit."},
        t.limits.max_kv_blocks);
  visit(
      Key{"limits.worker_memory_mib",
          "MiB that weights and KV of one worker may take; 0: an equal share of half the memory."},
      t.limits.worker_memory_mib);
  visit(Key{"limits.kv_memory_mib",
            "MiB of them that KV of one worker gets; 0: what its weights leave."},
        t.limits.kv_memory_mib);
  visit(Key{"limits.max_queued_requests", "Requests that wait at most; past it 429.", 1},
        t.limits.max_queued_requests);
  visit(Key{"limits.max_queued_tokens",
            "Tokens that wait at most (of prompts, without what is cached, and of outputs as "
            "expected); past "
            "it 429.",
            1},
        t.limits.max_queued_tokens);
  visit(Key{"limits.max_queued_requests_per_tenant", "The same for one tenant: requests,", 1},
        t.limits.max_queued_requests_per_tenant);
  visit(Key{"limits.max_queued_tokens_per_tenant", "and tokens.", 1},
        t.limits.max_queued_tokens_per_tenant);
  visit(Key{"limits.max_queue_delay_ms",
            "A request that would wait longer, as fast as the queue empties now, gets 429 at once.",
            1, kMaxU32},
        t.limits.max_queue_delay_ms);
  visit(Key{"limits.overload_calm_ms",
            "A tenant refused for that is held to an eighth of what runs until its queue has been "
            "empty for a third of this.",
            0, kMaxU32},
        t.limits.overload_calm_ms);
  visit(Key{"limits.bucket_edges",
            "Prompt lengths (without what is cached) that part the waiting requests into buckets, "
            "rising.",
            1, kMaxU32},
        t.limits.bucket_edges);
  visit(Key{"limits.queue_ageing_ms",
            "A step of priority is worth so long a wait; and what has waited so long and fits "
            "nowhere has a replica kept for it.",
            0, 3.6e6},
        t.limits.queue_ageing_ms);
  visit(Key{"limits.tenant_weights",
            "What tenants get of the work while others wait too, beside the 1 of all others: "
            "{ NAME = WEIGHT }.",
            1, 1000},
        t.limits.tenant_weights);
  visit(Key{"limits.trace_mib", "MiB after which a decision trace ends.", 1, 1e6},
        t.limits.trace_mib);
}

template <typename Visitor>
void visit_timeouts(Topology& t, Visitor& visit) {
  visit(Key{"timeouts.request_ms", "A request without a deadline of its own ends after this.", 1,
            kMaxU32},
        t.timeouts.request_ms);
  visit(Key{"timeouts.heartbeat_ms", "A worker silent for longer between steps is lost.", 3000,
            kMaxU32},
        t.timeouts.heartbeat_ms);
  visit(Key{"timeouts.load_ms", "Loading weights may take this long.", 1, kMaxU32},
        t.timeouts.load_ms);
  visit(Key{"timeouts.step_ms", "A replica that owes a step's result for longer is rebuilt.", 1,
            kMaxU32},
        t.timeouts.step_ms);
  visit(Key{"timeouts.collective_ms", "A rank waits this long for the others of its group.", 1,
            kMaxU32},
        t.timeouts.collective_ms);
}

template <typename Visitor>
void visit_api(Topology& t, Visitor& visit) {
  visit(Key{"api.admin",
            "HOST:PORT of status, drain and metrics, apart from http. Empty: they are on http."},
        t.api.admin);
  visit(
      Key{"api.keys",
          "File of API keys (see `brigade api-keys`), read again when it changes. Empty: no key is "
          "asked for."},
      t.api.keys);
  visit(Key{"api.tls_certificate",
            "PEM files of the certificate (with its issuers) and its key, read again when they "
            "change. Empty: no TLS."},
        t.api.tls_certificate);
  visit(Key{"api.tls_key", "The certificate's key."}, t.api.tls_key);
  visit(Key{"api.allow_addresses",
            "Addresses and networks (10.0.0.0/8) that http takes connections from; none: all."},
        t.api.allow_addresses);
  visit(Key{"api.admin_allow_addresses", "The same of api.admin."}, t.api.admin_allow_addresses);
  visit(Key{"api.allowed_hosts",
            "Names that a client may call this server by (Host) on a loopback address."},
        t.api.allowed_hosts);
  visit(Key{"api.cors_origins",
            "Origins (https://chat.example.com) whose web pages may read answers; \"*\": any."},
        t.api.cors_origins);
  visit(Key{"api.access_log",
            "File for a line of JSON about each request; \"-\": standard error; empty: none."},
        t.api.access_log);
  visit(Key{"api.access_log_prompts", "Whether these lines have the bodies of requests."},
        t.api.access_log_prompts);
  visit(Key{"api.vllm_metrics", "Whether /metrics has vLLM's names too, besides brigade_ ones."},
        t.api.vllm_metrics);
  visit(Key{"api.max_connections", "Clients connected at a time, of each address; above: 503.", 1,
            1'000'000},
        t.api.max_connections);
  visit(Key{"api.max_header_bytes", "Of one request; above: 431.", 1024, 1 << 20},
        t.api.max_header_bytes);
  visit(Key{"api.max_body_bytes", "Of one request; above: 413.", 1024, 1 << 30},
        t.api.max_body_bytes);
  visit(Key{"api.max_stream_bytes", "What the client of a stream may leave unread; above: cut.",
            16384, 1 << 30},
        t.api.max_stream_bytes);
  visit(Key{"api.header_ms", "A request's header (and a TLS handshake) must be whole in this time.",
            1, kMaxU32},
        t.api.header_ms);
  visit(Key{"api.idle_ms", "A connection without a request is closed after this.", 1, kMaxU32},
        t.api.idle_ms);
  visit(Key{"api.write_ms", "A client that takes no byte of its answer for this long is cut.", 1,
            kMaxU32},
        t.api.write_ms);
}

template <typename Visitor>
void visit_sim(Topology& t, Visitor& visit) {
  visit(Key{"sim.base_us", "A simulated step takes this long,", 0, 1e9}, t.sim.base_us);
  visit(Key{"sim.us_per_token", "and this for each of its tokens,", 0, 1e9}, t.sim.us_per_token);
  visit(Key{"sim.us_per_context_token", "and this for each token of context,", 0, 1e9},
        t.sim.us_per_context_token);
  visit(
      Key{"sim.jitter", "and up to this fraction more (drawn from replica, stage and step).", 0, 1},
      t.sim.jitter);
  visit(Key{"sim.load_ms", "Time it pretends to load weights.", 0, 1e9}, t.sim.load_ms);
}

}  // namespace keys

/// Calls visit(Key, field) for every key, in the order of configs/reference.toml. The one list of
/// keys: reading, overriding, checking for unknown ones and printing all go through it.
template <typename Visitor>
void visit_keys(Topology& t, Visitor&& visit) {
  keys::visit_grid_and_doors(t, visit);
  keys::visit_limits(t, visit);
  keys::visit_timeouts(t, visit);
  keys::visit_api(t, visit);
  keys::visit_sim(t, visit);
}

}  // namespace brigade::config
