// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/pipeline/stage_link.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "common/base/strings.h"

namespace brigade::worker {
namespace {

/// The step of a message that only shows that the connection stands. No epoch gets that far.
constexpr std::uint64_t kProbeStep = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kMaxKeptProbes = 256;
/// A send that finds no room looks at the stop token this often.
constexpr Duration kSendSlice = std::chrono::milliseconds(100);

/// Routing ids must be new for each connection, or a ROUTER that still holds the old one refuses
/// the new.
std::string new_routing_id(std::uint64_t connection) {
  std::random_device random;
  return str_cat("stage-", std::hex, random(), random(), '-', connection);
}

/// ZMQ's heartbeats stay off: a link between two steps has nothing to say, and who waits on it has
/// a deadline.
net::SocketOptions socket_options(std::size_t max_message_bytes) {
  return {.max_message_bytes = max_message_bytes,
          .max_frames = 2,
          .max_queued = StageLink::kMaxQueued,
          .heartbeat_interval = Duration::zero()};
}

}  // namespace

StageLink::StageLink(net::Context& context, Options options, net::Socket socket)
    : context_(context), options_(std::move(options)), socket_(std::move(socket)) {
  poller_.add(socket_);
  poller_.add_fd(wake_.fd());
}

Result<std::unique_ptr<StageLink>> StageLink::bind(net::Context& context, Options options) {
  net::SocketOptions of_socket = socket_options(options.max_message_bytes);
  if (options.keys) {
    RETURN_IF_ERROR(context.allow_peers({}));  // nobody, until there is an epoch
    of_socket.keys = net::Keys{.role = net::Role::kWorker, .own = *options.keys};
    of_socket.allowed = {net::Role::kWorker};
  }
  ASSIGN_OR_RETURN(net::Socket socket, net::Socket::router(context, std::move(of_socket)));
  std::unique_ptr<StageLink> link(new StageLink(context, std::move(options), std::move(socket)));
  for (const std::string& endpoint :
       {"ipc://" + link->options_.ipc_path, str_cat("tcp://", link->options_.bind_host, ":0")}) {
    ASSIGN_OR_RETURN(std::string bound, link->socket_.bind(endpoint));
    link->endpoints_.push_back(std::move(bound));
  }
  return link;
}

StageLink::~StageLink() {
  unlink(options_.ipc_path.c_str());  // libzmq 4.3.4 leaves it
}

std::string StageLink::public_key() const {
  return options_.keys ? options_.keys->public_key : "";
}

Status StageLink::admit(const wire::Assign& assign) {
  if (!options_.keys) return {};
  std::vector<net::AllowedPeer> peers;
  for (const wire::StageInfo& stage : assign.stages) {
    for (const std::string& key : stage.link_keys) {
      if (!key.empty())
        peers.push_back({.public_key = key, .role = net::Role::kWorker, .name = {}});
    }
  }
  return context_.allow_peers(std::move(peers)).with_context("link keys");
}

Status StageLink::open(const LinkPlan& plan, std::stop_token stop, TimePoint deadline) {
  close();
  const std::uint64_t largest =
      std::uint64_t{plan.max_step_tokens} * plan.hidden_size * sizeof(float);
  if (largest > options_.max_message_bytes) {
    return invalid_argument(str_cat("activations of ", plan.max_step_tokens, " tokens take ",
                                    largest, " bytes, a stage link carries ",
                                    options_.max_message_bytes));
  }
  plan_ = plan;
  stop_ = std::move(stop);
  open_ = true;
  for (const LinkPeer& peer : plan_.hidden_to)
    RETURN_IF_ERROR(connect_peer(peer));
  for (const LinkPeer& peer : plan_.samples_to)
    RETURN_IF_ERROR(connect_peer(peer));
  RETURN_IF_ERROR(send_probes(deadline));
  return await_probe(deadline);
}

void StageLink::close() {
  peers_.clear();
  last_sampled_step_.reset();
  stop_ = {};
  open_ = false;
}

Status StageLink::connect_peer(const LinkPeer& peer) {
  net::SocketOptions options = socket_options(options_.max_message_bytes);
  options.routing_id = new_routing_id(next_connection_++);
  if (options_.keys.has_value() == peer.key.empty()) {
    return failed_precondition(
        str_cat("stage ", peer.stage, " rank ", peer.tp_rank,
                peer.key.empty() ? " has no" : " has a", " link key and this rank has ",
                peer.key.empty() ? "one" : "none", ": start all workers with a key file, or none"));
  }
  if (options_.keys) {
    options.keys =
        net::Keys{.role = net::Role::kWorker, .own = *options_.keys, .server_key = peer.key};
  }
  ASSIGN_OR_RETURN(net::Socket socket, net::Socket::dealer(context_, std::move(options)));
  RETURN_IF_ERROR(socket.connect(peer.endpoint)
                      .with_context(str_cat("stage ", peer.stage, " rank ", peer.tp_rank)));
  peers_.push_back(std::move(socket));
  return {};
}

wire::ActivationHeader StageLink::make_header(std::uint64_t step) const {
  return {.epoch = plan_.epoch,
          .step = step,
          .from_stage = plan_.stage,
          .from_rank = plan_.tp_rank,
          .hidden_size = plan_.hidden_size};
}

Status StageLink::send_probes(TimePoint deadline) {
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    net::Frame header(encoder_.encode(wire::StageLinkMessage(make_header(kProbeStep))));
    net::Frame payload;
    RETURN_IF_ERROR(send(peer, header, &payload, deadline));
  }
  return {};
}

StageLink::Probe StageLink::expected_probe() const {
  if (plan_.hidden_from) return {plan_.epoch, plan_.stage - 1, *plan_.hidden_from};
  return {plan_.epoch, plan_.num_stages - 1, 0};
}

bool StageLink::has_probe() const {
  const Probe wanted = expected_probe();
  return std::any_of(probes_.begin(), probes_.end(), [&](const Probe& probe) {
    return probe.epoch == wanted.epoch && probe.stage == wanted.stage &&
           probe.tp_rank == wanted.tp_rank;
  });
}

void StageLink::keep_probe(const wire::ActivationHeader& header) {
  if (probes_.size() >= kMaxKeptProbes) probes_.pop_front();
  probes_.push_back({header.epoch, header.from_stage, header.from_rank});
}

Status StageLink::await_probe(TimePoint deadline) {
  if (plan_.num_stages == 1) return {};
  while (!has_probe()) {
    ASSIGN_OR_RETURN(const auto incoming, poll_message());
    if (incoming) return data_loss("a message came before the link was open");
    if (has_probe()) break;
    const Probe wanted = expected_probe();
    if (stop_.stop_requested()) return cancelled("opening the stage link was stopped");
    if (Clock::now() >= deadline) {
      return deadline_exceeded(str_cat("stage ", wanted.stage, " rank ", wanted.tp_rank,
                                       " did not connect to this rank's stage link"));
    }
    ASSIGN_OR_RETURN(const bool woken, poller_.wait(deadline));
    if (woken) wake_.clear();
  }
  std::erase_if(probes_, [&](const Probe& probe) { return probe.epoch == plan_.epoch; });
  return {};
}

Status StageLink::send(std::size_t peer, net::Frame& header, net::Frame* payload,
                       TimePoint deadline) {
  for (;;) {
    if (stop_.stop_requested()) return cancelled("sending on the stage link was stopped");
    std::vector<net::Frame> frames;
    frames.push_back(header.share());
    if (payload != nullptr) frames.push_back(payload->share());
    const TimePoint slice = std::min(deadline, Clock::now() + kSendSlice);
    const Status status = peers_[peer].send_until(std::move(frames), slice);
    if (status.code() != StatusCode::kDeadlineExceeded) return status;
    if (Clock::now() >= deadline) {
      const auto& to = plan_.last_stage() ? plan_.samples_to[peer] : plan_.hidden_to[peer];
      return status.with_context(str_cat("sending to stage ", to.stage, " rank ", to.tp_rank));
    }
  }
}

Status StageLink::send_hidden(const StepInputs& inputs, std::span<const float> hidden,
                              TimePoint deadline) {
  wire::ActivationHeader header = make_header(inputs.step);
  header.lane = inputs.lane;
  header.plan_hash = inputs.plan_hash;
  header.num_rows = static_cast<std::uint32_t>(inputs.num_tokens());
  INVARIANT_EQ(hidden.size_bytes(), header.payload_bytes());
  if (peers_.empty()) return {};
  net::Frame header_frame(encoder_.encode(wire::StageLinkMessage(header)));
  net::Frame payload(std::as_bytes(hidden));
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    RETURN_IF_ERROR(send(peer, header_frame, &payload, deadline));
  }
  return {};
}

Status StageLink::send_samples(const wire::SampledTokens& samples, TimePoint deadline) {
  net::Frame frame(encoder_.encode(wire::StageLinkMessage(samples)));
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    RETURN_IF_ERROR(send(peer, frame, nullptr, deadline));
  }
  return {};
}

std::optional<StageLink::Incoming> StageLink::take_activations(
    net::Received& received, const wire::ActivationHeader& header) {
  if (received.frames.size() != 2 || received.frames[1].size() != header.payload_bytes()) {
    ++dropped_.malformed;
    return std::nullopt;
  }
  if (header.step == kProbeStep) {
    keep_probe(header);
    return std::nullopt;
  }
  if (!open_ || header.epoch != plan_.epoch) {
    ++dropped_.other_epoch;
    return std::nullopt;
  }
  if (!plan_.hidden_from || header.from_stage + 1 != plan_.stage ||
      header.from_rank != *plan_.hidden_from) {
    ++dropped_.unexpected;
    return std::nullopt;
  }
  return Incoming{.message = header, .payload = std::move(received.frames[1])};
}

std::optional<StageLink::Incoming> StageLink::take(net::Received received) {
  if (received.frames.empty()) {
    ++dropped_.malformed;
    return std::nullopt;
  }
  auto message = wire::decode_stage_link(received.frames[0].bytes());
  if (!message.ok()) {
    ++dropped_.malformed;
    return std::nullopt;
  }
  if (const auto* header = std::get_if<wire::ActivationHeader>(&*message)) {
    return take_activations(received, *header);
  }
  if (received.frames.size() != 1) {
    ++dropped_.malformed;
    return std::nullopt;
  }
  if (!open_ || std::get<wire::SampledTokens>(*message).epoch != plan_.epoch) {
    ++dropped_.other_epoch;
    return std::nullopt;
  }
  if (!plan_.gets_samples()) {
    ++dropped_.unexpected;
    return std::nullopt;
  }
  return Incoming{.message = std::move(*message), .payload = {}};
}

/// The next message that counts, or nothing when none waits.
Result<std::optional<StageLink::Incoming>> StageLink::poll_message() {
  for (;;) {
    auto received = socket_.receive();
    if (!received.ok()) {
      if (received.status().code() != StatusCode::kDataLoss) return received.status();
      ++dropped_.malformed;
      continue;
    }
    if (!received->has_value()) return std::optional<Incoming>();
    std::optional<Incoming> incoming = take(std::move(**received));
    if (incoming) return incoming;
  }
}

Result<StageLink::Incoming> StageLink::next_message(TimePoint deadline, std::string_view awaited) {
  for (;;) {
    if (stop_.stop_requested()) return cancelled("waiting on the stage link was stopped");
    ASSIGN_OR_RETURN(std::optional<Incoming> incoming, poll_message());
    if (incoming) return std::move(*incoming);
    if (Clock::now() >= deadline) {
      return deadline_exceeded(str_cat(awaited, " did not come over the stage link"));
    }
    ASSIGN_OR_RETURN(const bool woken, poller_.wait(deadline));
    if (woken) wake_.clear();
  }
}

Status StageLink::check_hidden(const StepInputs& inputs, const Incoming& incoming) const {
  const auto& header = std::get<wire::ActivationHeader>(incoming.message);
  if (header.step != inputs.step || header.lane != inputs.lane ||
      header.plan_hash != inputs.plan_hash) {
    return data_loss(str_cat("activations are of step ", header.step, " lane ", header.lane,
                             " plan ", header.plan_hash, ", awaited step ", inputs.step, " lane ",
                             inputs.lane, " plan ", inputs.plan_hash));
  }
  if (header.num_rows != inputs.num_tokens() || header.hidden_size != plan_.hidden_size ||
      header.element != wire::ElementType::kF32) {
    return data_loss(str_cat("activations of step ", header.step, " are [", header.num_rows, ", ",
                             header.hidden_size, "] of element type ",
                             static_cast<int>(header.element), ", awaited f32 [",
                             inputs.num_tokens(), ", ", plan_.hidden_size, ']'));
  }
  return {};
}

Status StageLink::receive_hidden(const StepInputs& inputs, std::span<float> hidden,
                                 TimePoint deadline) {
  ASSIGN_OR_RETURN(const Incoming incoming,
                   next_message(deadline, str_cat("activations of step ", inputs.step)));
  RETURN_IF_ERROR(check_hidden(inputs, incoming));
  INVARIANT_EQ(incoming.payload.size(), hidden.size_bytes());
  if (!hidden.empty()) {
    std::memcpy(hidden.data(), incoming.payload.bytes().data(), hidden.size_bytes());
  }
  return {};
}

Status StageLink::record_samples(const Incoming& incoming, LastSamples& samples) {
  const auto& sampled = std::get<wire::SampledTokens>(incoming.message);
  if (last_sampled_step_ && sampled.step <= *last_sampled_step_) {
    return data_loss(str_cat("samples of step ", sampled.step, " came after those of step ",
                             *last_sampled_step_));
  }
  last_sampled_step_ = sampled.step;
  return samples.record(sampled.step, sampled.seq, sampled.token);
}

Status StageLink::receive_samples(std::optional<std::uint64_t> needed_step, LastSamples& samples,
                                  TimePoint deadline) {
  for (;;) {
    ASSIGN_OR_RETURN(const std::optional<Incoming> waiting, poll_message());
    if (!waiting) break;
    RETURN_IF_ERROR(record_samples(*waiting, samples));
  }
  while (needed_step && (!last_sampled_step_ || *last_sampled_step_ < *needed_step)) {
    ASSIGN_OR_RETURN(const Incoming incoming,
                     next_message(deadline, str_cat("samples of step ", *needed_step)));
    RETURN_IF_ERROR(record_samples(incoming, samples));
  }
  return {};
}

}  // namespace brigade::worker
