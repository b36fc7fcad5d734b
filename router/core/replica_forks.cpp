// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "common/base/check.h"
#include "router/core/replica.h"

namespace brigade::router {
namespace {

/// The block in which the last of so many tokens is.
std::uint32_t last_block(std::uint32_t num_tokens) {
  return (num_tokens - 1) / wire::kBlockSize;
}

}  // namespace

/// The first of a group computes the prompt; who comes later shares its whole blocks, copies the
/// one with the prompt's end, and computes the last token alone, whose row gives its first sample.
/// What the first one writes behind the prompt's end meanwhile is written over before it is read.
void Replica::join_group(Sequence& sequence) {
  const LiveRequest& request = *sequence.request;
  if (request.group == 0) return;
  sequence.group = request.group;
  Fork& fork = forks_[request.group];
  ++fork.num_members;
  if (sequence.scoring || request.num_output() > 0) return;
  if (!fork.block) {
    lead_group(fork, sequence);
    return;
  }
  const std::uint32_t end = last_block(request.num_prompt);
  const auto tail = request.tokens.begin() + end * wire::kBlockSize;
  if (fork.num_prompt != request.num_prompt || sequence.num_shared != end ||
      !std::equal(tail, request.tokens.end(), fork.tokens.begin())) {
    return;
  }
  sequence.forked = true;
  sequence.scheduled = request.num_prompt - 1;
}

void Replica::lead_group(Fork& fork, Sequence& sequence) {
  const LiveRequest& request = *sequence.request;
  const std::uint32_t end = last_block(request.num_prompt);
  fork.block = sequence.blocks[end];
  fork.writer = sequence.id;
  fork.num_prompt = request.num_prompt;
  fork.tokens.fill(-1);
  std::copy(request.tokens.begin() + end * wire::kBlockSize, request.tokens.end(),
            fork.tokens.begin());
  pool_.share(*fork.block);
}

void Replica::drop_block(Fork& fork) {
  std::vector<std::uint32_t> block = {*std::exchange(fork.block, std::nullopt)};
  pool_.release(block, fork.last_copy);
  fork.writer.reset();
}

void Replica::leave_group(Sequence& sequence) {
  if (sequence.group == 0) return;
  const auto it = forks_.find(sequence.group);
  Fork& fork = it->second;
  if (--fork.num_members == 0) {
    if (fork.block) drop_block(fork);
    forks_.erase(it);
    return;
  }
  if (fork.writer != sequence.id) return;
  drop_block(fork);
  // The others wait for one that is not there any more: the first of them computes the end now.
  for (Sequence& other : sequences_) {
    if (other.request == nullptr || other.group != sequence.group || !other.forked) continue;
    if (other.admit_sent) continue;
    prefill_backlog_ -= other.prefill_left();
    other.forked = false;
    other.scheduled = other.num_shared * wire::kBlockSize;
    prefill_backlog_ += other.prefill_left();
    lead_group(fork, other);
    return;
  }
}

}  // namespace brigade::router
