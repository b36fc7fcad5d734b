// SPDX-License-Identifier: Apache-2.0
#include "tests/router/actors/support/scripted_worker.h"

#include <limits>

#include "common/wire/build_info.h"
#include "tests/router/core/support/fake_model.h"

namespace brigade::router::testing {
namespace {

constexpr Duration kHeartbeat = std::chrono::milliseconds(300);

net::Socket make_socket(net::Context& context, const ScriptedWorker::Options& options) {
  auto socket = net::Socket::dealer(context, {.max_message_bytes = wire::kMaxStepBytes,
                                              .routing_id = options.routing_id,
                                              .keys = options.keys});
  INVARIANT(socket.ok() && socket->connect(options.endpoint).ok());
  return std::move(socket).value();
}

}  // namespace

char letter_at(std::uint32_t position) {
  return static_cast<char>('a' + position % 26);
}

ScriptedWorker::ScriptedWorker(net::Context& context, Options options)
    : options_(std::move(options)), socket_(make_socket(context, options_)) {
  thread_ = std::thread([this] { loop(); });
}

ScriptedWorker::~ScriptedWorker() {
  stop_ = true;
  thread_.join();
}

void ScriptedWorker::loop() {
  send(wire::Hello{.build_id = "test",
                   .schema_hash = std::string(wire::schema_hash()),
                   .name = options_.routing_id,
                   .incarnation = options_.incarnation,
                   .host_id = "here",
                   .pid = 1,
                   .device = "sim",
                   .memory_bytes = 1 << 30,
                   .endpoints = {"ipc:///nowhere"}});
  TimePoint next_heartbeat = Clock::now() + kHeartbeat;
  while (!stop_ && !released_ && !sequence_broken_) {
    auto received = socket_.receive_until(Clock::now() + std::chrono::milliseconds(10));
    INVARIANT(received.ok());
    if (*received) receive(**received);
    if (garbage_.exchange(false)) {
      std::vector<net::Frame> frames;
      frames.emplace_back(std::span<const std::byte>(out_.next()));
      frames.emplace_back(std::string_view("\xff\xff\xff\xff nonsense"));
      (void)socket_.send(std::move(frames));
    }
    if (Clock::now() >= next_heartbeat) {
      next_heartbeat = Clock::now() + kHeartbeat;
      send(wire::Heartbeat{});
    }
  }
}

void ScriptedWorker::send(const wire::FromWorker& message) {
  std::vector<net::Frame> frames;
  frames.emplace_back(std::span<const std::byte>(out_.next()));
  frames.emplace_back(encoder_.encode(message));
  (void)socket_.send_until(std::move(frames), Clock::now() + std::chrono::seconds(5));
}

void ScriptedWorker::receive(const net::Received& received) {
  INVARIANT_EQ(received.frames.size(), 2U);
  if (!in_.accept(received.frames[0].bytes()).ok()) {
    sequence_broken_ = true;
    return;
  }
  const auto message = wire::decode_to_worker(received.frames[1].bytes());
  INVARIANT(message.ok()) << message.status().message();
  answer(*message);
}

void ScriptedWorker::answer(const wire::ToWorker& message) {
  if (const auto* assign = std::get_if<wire::Assign>(&message)) {
    send(wire::Loaded{.epoch = assign->epoch, .max_kv_blocks = 256, .weight_bytes = 1});
  } else if (const auto* start = std::get_if<wire::Start>(&message)) {
    send(wire::Ready{.epoch = start->epoch});
  } else if (std::holds_alternative<wire::Release>(message)) {
    send(wire::Goodbye{.reason = "released"});
    released_ = true;
  } else if (const auto* command = std::get_if<wire::StepCommand>(&message)) {
    std::this_thread::sleep_for(options_.step_time);
    send(run(*command));
  }
}

wire::StepResult ScriptedWorker::run(const wire::StepCommand& command) {
  wire::StepResult result = {.epoch = command.epoch,
                             .step = command.step,
                             .lane = command.lane,
                             .plan_hash = wire::plan_hash(command),
                             .cu_top = {0}};
  for (std::size_t i = 0; i < command.num_seqs(); ++i) {
    if ((command.flags[i] & wire::kSampleToken) == 0) continue;
    const std::uint32_t position =
        command.position[i] + command.cu_tokens[i + 1] - command.cu_tokens[i];
    result.seq.push_back(command.seq[i]);
    result.position.push_back(position);
    result.token.push_back(FakeTokenizer::kA + (letter_at(position) - 'a'));
    result.sampled.push_back(1);
    result.logprob.push_back(std::numeric_limits<float>::quiet_NaN());
    result.cu_top.push_back(0);
  }
  return result;
}

}  // namespace brigade::router::testing
