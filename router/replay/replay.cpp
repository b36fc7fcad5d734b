// SPDX-License-Identifier: Apache-2.0
#include "router/replay/replay.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "common/base/overloaded.h"
#include "common/base/strings.h"
#include "router/process/served_model.h"
#include "router/replay/json_reader.h"

namespace brigade::router {

void visit_fields(auto&& visit, Is<TracedModel> auto& value) {
  auto& [name, path, digest, max_context] = value;
  visit("name", name, "path", path, "digest", digest, "max_context", max_context);
}

void visit_fields(auto&& visit, Is<TraceHeader> auto& value) {
  auto& [config, models] = value;
  visit("config", config, "models", models);
}

namespace {

namespace json = boost::json;

Result<json::object> parse_object(std::string_view line) {
  boost::system::error_code error;
  json::value value = json::parse(line, error);
  if (error) return data_loss(str_cat("it is not JSON: ", error.message()));
  if (!value.is_object()) return data_loss("it is not a JSON object");
  return std::move(value.get_object());
}

template <typename Message>
Status read_message(const json::object& object, std::string_view name, wire::FromWorker& message) {
  JsonReader reader(object);
  reader(name, message.emplace<Message>());
  return reader.status();
}

template <std::size_t... kIndex>
Result<wire::FromWorker> read_any_message(const json::object& object,
                                          std::index_sequence<kIndex...> /*alternatives*/) {
  wire::FromWorker message;
  Status status = data_loss("it has a message of no known kind");
  const auto try_kind = [&]<std::size_t kKind>() {
    if (!object.contains(kFromWorkerNames[kKind])) return false;
    using Message = std::variant_alternative_t<kKind, wire::FromWorker>;
    status = read_message<Message>(object, kFromWorkerNames[kKind], message);
    return true;
  };
  (void)(try_kind.template operator()<kIndex>() || ...);
  RETURN_IF_ERROR(status);
  return message;
}

Result<TraceLine> read_event(const json::object& object) {
  JsonReader reader(object);
  TraceLine line;
  if (object.contains("submit")) {
    reader("submit", line.emplace<Request>());
  } else if (object.contains("cancel")) {
    reader("cancel", line.emplace<CancelLine>().request);
  } else if (object.contains("from")) {
    MessageLine message;
    reader("from", message.worker);
    ASSIGN_OR_RETURN(message.message,
                     read_any_message(object, std::make_index_sequence<kFromWorkerNames.size()>()));
    line = std::move(message);
  } else if (object.contains("lost")) {
    auto& lost = line.emplace<WorkerLostLine>();
    reader("lost", lost.worker, "reason", lost.reason);
  } else if (object.contains("drain")) {
    reader("drain", line.emplace<DrainLine>().replica);
  } else if (object.contains("close")) {
    line = CloseLine{};
  } else if (object.contains("advance")) {
    line = AdvanceLine{};
  } else {
    return data_loss("it is no event that this version knows");
  }
  RETURN_IF_ERROR(reader.status());
  return line;
}

/// The first place where two lines part, with what is around it.
std::string difference(std::string_view recorded, std::string_view replayed) {
  constexpr std::size_t kBefore = 60;
  constexpr std::size_t kShown = 160;
  const auto [at, other] = std::ranges::mismatch(recorded, replayed);
  const auto place = static_cast<std::size_t>(at - recorded.begin());
  const std::size_t from = place - std::min(place, kBefore);
  const auto part = [&](std::string_view text) {
    return std::string(text.substr(std::min(from, text.size()), kShown));
  };
  return str_cat("from byte ", place, " on\n  recorded: ", part(recorded),
                 "\n  replayed: ", part(replayed));
}

}  // namespace

Result<TraceHeader> read_trace_header(std::string_view line) {
  ASSIGN_OR_RETURN(const json::object object, parse_object(line));
  if (!object.contains("trace")) return data_loss("it is not the first line of a trace");
  int version = 0;
  TraceHeader header;
  JsonReader reader(object);
  reader("trace", version);
  if (reader.status().ok() && version != Trace::kVersion) {
    return data_loss(str_cat("it has trace version ", version, ", this is ", Trace::kVersion));
  }
  visit_fields(reader, header);
  RETURN_IF_ERROR(reader.status());
  return header;
}

Result<std::vector<std::shared_ptr<const ServedModel>>> load_traced_models(
    const TraceHeader& header, const std::vector<std::string>& paths) {
  std::vector<std::shared_ptr<const ServedModel>> models;
  for (std::size_t i = 0; i < header.models.size(); ++i) {
    const TracedModel& traced = header.models[i];
    auto loaded = load_served_model(i < paths.size() ? paths[i] : traced.path);
    if (!loaded.ok()) return loaded.status().with_context("model " + quoted(traced.name));
    const std::shared_ptr<ServedModel>& model = *loaded;
    if (model->digest != traced.digest) {
      return failed_precondition(str_cat("model ", quoted(traced.name), ": ", model->path,
                                         " is not the file that was served"));
    }
    model->name = traced.name;
    model->path = traced.path;
    model->max_context = traced.max_context;
    models.push_back(model);
  }
  return models;
}

std::string_view name_of(const wire::FromWorker& message) {
  return kFromWorkerNames[message.index()];
}

std::string_view name_of(const wire::ToWorker& message) {
  return kToWorkerNames[message.index()];
}

Replay::Replay(const TraceHeader& header, std::vector<std::shared_ptr<const ServedModel>> models)
    : router_(std::make_unique<Router>(header.config, std::move(models),
                                       [this](std::string line) { written_ = std::move(line); })) {}

Status Replay::check(std::string_view recorded) {
  if (written_ == recorded) return {};
  return internal_error("the core goes another way here, " + difference(recorded, written_));
}

Result<TraceLine> Replay::apply(std::string_view line) {
  ASSIGN_OR_RETURN(const json::object object, parse_object(line));
  written_.clear();
  if (object.contains("sends")) {
    Actions actions = router_->take_actions();
    RETURN_IF_ERROR(check(line));
    return TraceLine(std::move(actions));
  }
  if (object.contains("end")) {
    EndLine end;
    JsonReader end_reader(object);
    end_reader("end", end.reason);
    RETURN_IF_ERROR(end_reader.status());
    return TraceLine(std::move(end));
  }
  Duration since_start{};
  JsonReader reader(object);
  reader("t", since_start);
  RETURN_IF_ERROR(reader.status());
  now_ = TimePoint(since_start);
  ASSIGN_OR_RETURN(TraceLine event, read_event(object));
  std::visit(
      Overloaded{
          [&](const Request& e) { router_->submit(e, now_); },
          [&](const CancelLine& e) { router_->cancel(e.request, now_); },
          [&](const MessageLine& e) { router_->on_message(e.worker, e.message, now_); },
          [&](const WorkerLostLine& e) { router_->on_worker_lost(e.worker, e.reason, now_); },
          [&](const DrainLine& e) { (void)router_->drain(e.replica, now_); },
          [&](const CloseLine&) { router_->close(now_); },
          [&](const AdvanceLine&) { router_->advance(now_); },
          [](const EndLine&) {},
          [](const Actions&) {},
      },
      event);
  RETURN_IF_ERROR(check(line));
  return event;
}

Status Replay::finish() {
  const Actions actions = router_->take_actions();
  if (actions.sends.empty() && actions.outputs.empty()) return {};
  return internal_error(str_cat("the trace ends, but the core has ", actions.sends.size(),
                                " sends and ", actions.outputs.size(), " outputs more"));
}

}  // namespace brigade::router
