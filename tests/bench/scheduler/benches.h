// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace brigade::bench {

/// CPU time and allocations of planning, on this machine.
void bench_planning();

// In virtual time: the same on any machine.

/// Busy stages at saturation, and the latency of a lone request, over stages and delays.
void bench_pipelines();
/// Short requests beside very long prompts.
void bench_short_beside_long();
/// Four times the load that can be served.
void bench_overload();
/// Two tenants, one with a hundred times the other's load.
void bench_tenants();
/// Prompts that share a prefix, over eight replicas.
void bench_shared_prefixes();

}  // namespace brigade::bench
