// SPDX-License-Identifier: Apache-2.0
#include "common/wire/codec.h"
#include "common/wire/pack.h"

namespace brigade::wire {

struct Encoder::Impl {
  Builder builder{1024};

  template <typename Message>
  std::span<const std::byte> encode(const Message& message) {
    // Clear keeps the memory; Release would give it away and cost the price of a fresh builder.
    builder.Clear();
    pack(builder, message);
    return {reinterpret_cast<const std::byte*>(builder.GetBufferPointer()), builder.GetSize()};
  }
};

Encoder::Encoder() : impl_(std::make_unique<Impl>()) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

std::span<const std::byte> Encoder::encode(const FromWorker& message) {
  return impl_->encode(message);
}
std::span<const std::byte> Encoder::encode(const ToWorker& message) {
  return impl_->encode(message);
}
std::span<const std::byte> Encoder::encode(const StageLinkMessage& message) {
  return impl_->encode(message);
}
std::span<const std::byte> Encoder::encode(const ToRouter& message) {
  return impl_->encode(message);
}
std::span<const std::byte> Encoder::encode(const FromRouter& message) {
  return impl_->encode(message);
}

}  // namespace brigade::wire
