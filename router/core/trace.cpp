// SPDX-License-Identifier: Apache-2.0
#include "router/core/trace.h"

#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "common/model/tokenizer.h"
#include "router/core/trace_fields.h"

namespace brigade::router {
namespace {

/// Appends JSON to a string; commas between the members of an object come by themselves.
class JsonWriter final {
 public:
  template <typename... Rest>
  void operator()(std::string_view name, const auto& value, const Rest&... rest) {
    member(name, value);
    if constexpr (sizeof...(rest) > 0) (*this)(rest...);
  }

  void member(std::string_view name, const auto& value) {
    key(name);
    write(value);
  }
  void key(std::string_view name) {
    if (text_.back() != '{') text_ += ',';
    write(name);
    text_ += ':';
  }
  void punctuate(char mark) { text_ += mark; }
  std::string finish() {
    text_ += '}';
    return std::move(text_);
  }

  void write(bool value) { text_ += value ? "true" : "false"; }
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void write(Number value) {
    if constexpr (std::is_floating_point_v<Number>) {
      if (!std::isfinite(value)) {
        text_ += "null";
        return;
      }
    }
    char digits[32];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void write(Enum value) { write(static_cast<std::underlying_type_t<Enum>>(value)); }
  void write(Duration value) { write(value.count()); }
  void write(std::string_view value);
  void write(const std::string& value) { write(std::string_view(value)); }
  template <typename T>
  void write(const std::optional<T>& value) {
    write_if_any(value);
  }
  template <typename T>
  void write(const std::shared_ptr<T>& value) {
    write_if_any(value);
  }
  template <typename T>
  void write(const std::vector<T>& values) {
    write_list(values);
  }
  void write(const OutputTokens& values) { write_list(values); }
  template <typename T>
  void write(const std::map<std::string, T>& values) {
    text_ += '{';
    for (const auto& [name, value] : values)
      member(name, value);
    text_ += '}';
  }
  void write(const Status& status) {
    text_ += '{';
    (*this)("code", status.code(), "message", status.message());
    text_ += '}';
  }
  template <typename Struct>
  requires requires(JsonWriter& writer, const Struct& value) { visit_fields(writer, value); }
  void write(const Struct& value) {
    text_ += '{';
    visit_fields(*this, value);
    text_ += '}';
  }

 private:
  void write_list(const auto& values) {
    text_ += '[';
    for (const auto& value : values) {
      if (&value != values.data()) text_ += ',';
      write(value);
    }
    text_ += ']';
  }
  void write_if_any(const auto& value) {
    if (value) {
      write(*value);
    } else {
      text_ += "null";
    }
  }

  std::string text_ = "{";
};

void JsonWriter::write(std::string_view value) {
  constexpr std::string_view kHex = "0123456789abcdef";
  // Bytes that are no text (a token may be part of a character) stay tellable apart: JSON has no
  // other way to hold them.
  const bool is_text = model::is_valid_utf8(value);
  text_ += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && c != '"' && c != '\\' && (byte < 0x7f || is_text)) {
      text_ += c;
      continue;
    }
    text_ += "\\u00";
    text_ += kHex[byte >> 4];
    text_ += kHex[byte & 15];
  }
  text_ += '"';
}

JsonWriter at(TimePoint now) {
  JsonWriter writer;
  writer.member("t", now.time_since_epoch().count());
  return writer;
}

/// One entry for the ranks of a replica, which get the same command one after another.
void write_sends(JsonWriter& writer, const std::vector<SendToWorker>& sends) {
  const auto same_step = [](const wire::ToWorker& a, const wire::ToWorker& b) {
    const auto* left = std::get_if<wire::StepCommand>(&a);
    const auto* right = std::get_if<wire::StepCommand>(&b);
    return left != nullptr && right != nullptr && left->epoch == right->epoch &&
           left->step == right->step;
  };
  writer.key("sends");
  writer.punctuate('[');
  for (std::size_t i = 0; i < sends.size();) {
    if (i > 0) writer.punctuate(',');
    std::vector<WorkerId> to = {sends[i].worker};
    std::size_t next = i + 1;
    for (; next < sends.size() && same_step(sends[i].message, sends[next].message); ++next) {
      to.push_back(sends[next].worker);
    }
    writer.punctuate('{');
    writer.member("to", to);
    std::visit([&](const auto& m) { writer.member(kToWorkerNames[sends[i].message.index()], m); },
               sends[i].message);
    writer.punctuate('}');
    i = next;
  }
  writer.punctuate(']');
}

}  // namespace

void Trace::begin(const RouterConfig& config,
                  const std::vector<std::shared_ptr<const ServedModel>>& models) {
  JsonWriter writer;
  writer("trace", kVersion, "config", config);
  writer.key("models");
  writer.punctuate('[');
  for (const auto& model : models) {
    if (model != models.front()) writer.punctuate(',');
    writer.punctuate('{');
    writer("name", model->name, "path", model->path, "digest", model->digest, "max_context",
           model->max_context);
    writer.punctuate('}');
  }
  writer.punctuate(']');
  sink_(writer.finish());
}

void Trace::submit(const Request& request, TimePoint now) {
  JsonWriter writer = at(now);
  writer.member("submit", request);
  sink_(writer.finish());
}

void Trace::cancel(RequestId request, TimePoint now) {
  JsonWriter writer = at(now);
  writer.member("cancel", request);
  sink_(writer.finish());
}

void Trace::message(WorkerId worker, const wire::FromWorker& message, TimePoint now) {
  JsonWriter writer = at(now);
  writer.member("from", worker);
  std::visit([&](const auto& m) { writer.member(kFromWorkerNames[message.index()], m); }, message);
  sink_(writer.finish());
}

void Trace::worker_lost(WorkerId worker, const std::string& reason, TimePoint now) {
  JsonWriter writer = at(now);
  writer("lost", worker, "reason", reason);
  sink_(writer.finish());
}

void Trace::drain(ReplicaId replica, TimePoint now) {
  JsonWriter writer = at(now);
  writer.member("drain", replica);
  sink_(writer.finish());
}

void Trace::close(TimePoint now) {
  JsonWriter writer = at(now);
  writer.member("close", true);
  sink_(writer.finish());
}

void Trace::advance(TimePoint now) {
  JsonWriter writer = at(now);
  writer.member("advance", true);
  sink_(writer.finish());
}

std::string Trace::end_line(const std::string& reason) {
  JsonWriter writer;
  writer.member("end", reason);
  return writer.finish();
}

void Trace::actions(const Actions& actions) {
  if (actions.sends.empty() && actions.outputs.empty()) return;
  JsonWriter writer;
  write_sends(writer, actions.sends);
  writer.member("outputs", actions.outputs);
  sink_(writer.finish());
}

}  // namespace brigade::router
