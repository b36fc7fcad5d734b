// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <optional>

#include "common/base/files.h"

/// What a process hears from outside, as descriptors that can be polled: signals, and the end of
/// the process that started it.
namespace brigade {

/// Keeps the signals from ending the process by themselves, in this thread and those it makes: call
/// first in main.
void block_signals(std::initializer_list<int> signals);

/// Readable when one of the (blocked) signals has come. Does not block when it is read.
[[nodiscard]] FileDescriptor open_signals(std::initializer_list<int> signals);

/// The next signal that waits at a descriptor of open_signals().
[[nodiscard]] std::optional<int> take_signal(const FileDescriptor& signals);

/// Readable when the process has ended (a pidfd: no thread of the parent matters). Not valid when
/// it is not our parent, or not any more.
[[nodiscard]] FileDescriptor watch_parent(pid_t parent);

}  // namespace brigade
