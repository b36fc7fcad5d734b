// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "common/wire/build_info.h"
#include "common/wire/codec.h"
#include "tests/common/wire/dump.h"
#include "tests/common/wire/samples.h"

namespace brigade::wire {
namespace {

template <typename Message, typename Decode>
void check_round_trip(const std::vector<Message>& messages, Decode decode) {
  Encoder encoder;
  for (const Message& message : messages) {
    CAPTURE(message.index());
    const auto decoded = decode(encoder.encode(message));
    REQUIRE_MESSAGE(decoded.ok(), decoded.status().message());
    CHECK(dump(decoded.value()) == dump(message));
  }
}

std::string refusal(const ToWorker& message) {
  Encoder encoder;
  const auto decoded = decode_to_worker(encoder.encode(message));
  REQUIRE_FALSE(decoded.ok());
  CHECK(decoded.status().code() == StatusCode::kDataLoss);
  return decoded.status().message();
}

std::string refusal(const FromWorker& message) {
  Encoder encoder;
  const auto decoded = decode_from_worker(encoder.encode(message));
  REQUIRE_FALSE(decoded.ok());
  CHECK(decoded.status().code() == StatusCode::kDataLoss);
  return decoded.status().message();
}

}  // namespace

TEST_CASE("every field of every worker message survives the wire") {
  check_round_trip(from_worker_samples(), decode_from_worker);
  check_round_trip(to_worker_samples(), decode_to_worker);
  check_round_trip(stage_link_samples(), decode_stage_link);
}

TEST_CASE("empty messages survive the wire") {
  Assign assign;
  assign.stages.resize(1);
  assign.stages[0].host_ids.resize(1);
  assign.stages[0].endpoints.resize(1);
  assign.stages[0].link_keys.resize(1);
  check_round_trip<ToWorker>({assign, Start{}, Abort{}, Release{}, HeartbeatAck{}, StepCommand{}},
                             decode_to_worker);
  check_round_trip<FromWorker>({Hello{}, LoadProgress{}, Loaded{}, Ready{}, Heartbeat{}, Goodbye{},
                                StepResult{}, StageTimes{}},
                               decode_from_worker);
}

TEST_CASE("bytes at any alignment decode") {
  Encoder encoder;
  const auto bytes = encoder.encode(ToWorker(sample_command()));
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> moved(bytes.size() + shift);
    std::copy(bytes.begin(), bytes.end(), moved.begin() + static_cast<std::ptrdiff_t>(shift));
    CHECK(decode_to_worker(std::span(moved).subspan(shift)).ok());
  }
}

TEST_CASE("a command whose vectors do not belong together is refused by the field's name") {
  const auto broken = [](auto change) {
    StepCommand command = sample_command();
    change(command);
    return refusal(ToWorker(command));
  };
  CHECK(broken([](StepCommand& c) { c.position.pop_back(); }).find("position") !=
        std::string::npos);
  CHECK(broken([](StepCommand& c) { c.flags.push_back(0); }).find("flags") != std::string::npos);
  CHECK(broken([](StepCommand& c) { c.flags[0] = 8; }).find("flags") != std::string::npos);
  CHECK(broken([](StepCommand& c) { c.next_token.clear(); }).find("next_token") !=
        std::string::npos);
  CHECK(broken([](StepCommand& c) { c.cu_tokens.pop_back(); }).find("cu_tokens") !=
        std::string::npos);
  CHECK(broken([](StepCommand& c) { c.cu_tokens[0] = 1; }).find("start at 0") != std::string::npos);
  CHECK(broken([](StepCommand& c) { c.cu_tokens[1] = 9; }).find("falls") != std::string::npos);
  CHECK(broken([](StepCommand& c) { c.tokens.pop_back(); }).find("cu_tokens") != std::string::npos);
  CHECK(broken([](StepCommand& c) { c.blocks.push_back(1); }).find("cu_blocks") !=
        std::string::npos);
  CHECK(broken([](StepCommand& c) { c.cu_blocks.clear(); }).find("cu_blocks") != std::string::npos);
  CHECK(broken([](StepCommand& c) { c.admit[0].temperature = kNan; }).find("temperature") !=
        std::string::npos);
  CHECK(broken([](StepCommand& c) { c.admit[0].num_logprobs = 21; }).find("num_logprobs") !=
        std::string::npos);
  const auto broken_controls = [&](auto change) {
    return broken([&](StepCommand& c) {
      SamplingControls controls = *c.admit[2].controls;
      change(controls);
      c.admit[2].controls = std::make_shared<SamplingControls>(std::move(controls));
    });
  };
  CHECK(broken_controls([](SamplingControls& c) { c.min_p = kNan; }).find("min_p") !=
        std::string::npos);
  CHECK(broken_controls([](SamplingControls& c) { c.bias[0].bias = kNan; }).find("bias_values") !=
        std::string::npos);
  CHECK(broken_controls([](SamplingControls& c) { c.bad_words[0].clear(); }).find("bad_word") !=
        std::string::npos);
}

TEST_CASE("a result whose vectors do not belong together is refused by the field's name") {
  const auto broken = [](auto change) {
    StepResult result = sample_result();
    change(result);
    return refusal(FromWorker(result));
  };
  CHECK(broken([](StepResult& r) { r.token.pop_back(); }).find("token") != std::string::npos);
  CHECK(broken([](StepResult& r) { r.logprob.clear(); }).find("logprob") != std::string::npos);
  for (const std::uint8_t kind : {2, 6, 7, 8}) {
    CHECK(broken([&](StepResult& r) { r.sampled[0] = kind; }).find("sampled") != std::string::npos);
  }
  CHECK(broken([](StepResult& r) { r.cu_top.back() = 3; }).find("cu_top") != std::string::npos);
  CHECK(broken([](StepResult& r) { r.top_logprobs.pop_back(); }).find("top_logprobs") !=
        std::string::npos);
  CHECK(broken([](StepResult& r) { r.top_logprobs[0] = kNan; }).find("NaN") != std::string::npos);
}

TEST_CASE("an assignment outside its own grid is refused") {
  const auto broken = [](auto change) {
    Assign assign = sample_assign();
    change(assign);
    return refusal(ToWorker(assign));
  };
  CHECK(broken([](Assign& a) { a.pp_stage = 2; }).find("pp_stage") != std::string::npos);
  CHECK(broken([](Assign& a) { a.tp_rank = 2; }).find("tp_rank") != std::string::npos);
  CHECK(broken([](Assign& a) { a.stages[1].tp_size = 3; }).find("host_ids") != std::string::npos);
  CHECK(broken([](Assign& a) { a.stages[0].layers = {5, 1}; }).find("layers") != std::string::npos);
  CHECK(broken([](Assign& a) { a.kv_type = static_cast<KvType>(2); }).find("kv_type") !=
        std::string::npos);
  CHECK(broken([](Assign& a) { a.sim.jitter = kNan; }).find("jitter") != std::string::npos);
}

TEST_CASE("values out of range are refused") {
  CHECK(refusal(FromWorker(LoadProgress{.epoch = 1, .fraction = kNan})).find("fraction") !=
        std::string::npos);
  CHECK(refusal(FromWorker(Failed{1, {static_cast<StatusCode>(11), "x"}})).find("error") !=
        std::string::npos);
  CHECK(refusal(FromWorker(Failed{1, {}})).find("error is not an error") != std::string::npos);
  Encoder encoder;
  CHECK_FALSE(decode_stage_link(encoder.encode(StageLinkMessage(ActivationHeader{
                                    .num_rows = kMaxStageRows, .hidden_size = kMaxHiddenSize})))
                  .ok());
  CHECK_FALSE(
      decode_stage_link(encoder.encode(StageLinkMessage(SampledTokens{.seq = {1}, .token = {}})))
          .ok());
}

TEST_CASE("control messages over 64 KiB are refused, steps are not") {
  CHECK(refusal(FromWorker(Goodbye{std::string(kMaxControlBytes, 'x')})).find("65536") !=
        std::string::npos);
  StepCommand command = sample_command();
  command.blocks.assign(100000, 1);
  command.cu_blocks = {0, 0, 2, 100000};
  Encoder encoder;
  CHECK(decode_to_worker(encoder.encode(ToWorker(command))).ok());
  command.blocks.assign(2000000, 1);
  command.cu_blocks = {0, 0, 2, 2000000};
  CHECK_FALSE(decode_to_worker(encoder.encode(ToWorker(command))).ok());
}

TEST_CASE("the build says which schemas and commit it is of") {
  CHECK(schema_hash().size() == 16);
  CHECK_FALSE(build_id().empty());
}

}  // namespace brigade::wire
