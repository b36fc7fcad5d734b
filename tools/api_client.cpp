// SPDX-License-Identifier: Apache-2.0
#include "tools/api_client.h"

#include <limits>

#include "common/base/strings.h"
#include "tools/sse.h"

namespace brigade::tools {
namespace {

namespace json = boost::json;
using std::chrono::seconds;

constexpr Duration kScoreTimeout = seconds(600);

std::string text_of(const json::value& value) {
  const json::string* text = value.if_string();
  return text == nullptr ? std::string() : std::string(text->data(), text->size());
}

const json::value* find(const json::value& value, std::string_view name) {
  const json::object* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

/// `error.message` of an error body of OpenAI's shape; empty when it is not one.
std::string error_message(const json::value& body) {
  const json::value* error = find(body, "error");
  const json::value* message = error == nullptr ? nullptr : find(*error, "message");
  return message == nullptr ? std::string() : text_of(*message);
}

StatusCode code_of(unsigned http_status) {
  switch (http_status) {
    case 400:
      return StatusCode::kInvalidArgument;
    case 401:
    case 403:
      return StatusCode::kPermissionDenied;
    case 404:
      return StatusCode::kNotFound;
    case 409:
      return StatusCode::kFailedPrecondition;
    case 429:
      return StatusCode::kResourceExhausted;
    case 503:
      return StatusCode::kUnavailable;
    case 504:
      return StatusCode::kDeadlineExceeded;
    default:
      return StatusCode::kInternal;
  }
}

Status status_of(const HttpResponse& response) {
  boost::system::error_code error;
  const json::value body = json::parse(response.body, error);
  std::string message = error ? std::string() : error_message(body);
  if (message.empty()) message = str_cat("HTTP ", response.status, " ", quoted(response.body));
  return {code_of(response.status), std::move(message)};
}

Result<std::string> body_of(const Result<HttpResponse>& response) {
  if (!response.ok()) return response.status();
  if (response->status != 200) return status_of(*response);
  return response->body;
}

Result<json::value> json_of(const Result<HttpResponse>& response) {
  ASSIGN_OR_RETURN(const std::string body, body_of(response));
  boost::system::error_code error;
  json::value value = json::parse(body, error);
  if (error) return data_loss(str_cat("the router's answer is not JSON: ", error.message()));
  return value;
}

/// Takes the events of one streamed answer.
class StreamReader {
 public:
  StreamReader(StreamSummary& summary, const std::function<void(std::string_view)>& on_text)
      : summary_(summary), on_text_(on_text), start_(Clock::now()) {}

  void on_event(const SseEvent& event) {
    if (event.data == "[DONE]") {
      done_ = true;
      return;
    }
    boost::system::error_code error;
    const json::value chunk = json::parse(event.data, error);
    if (error) {
      fail(data_loss(str_cat("an event of the stream is not JSON: ", quoted(event.data))));
      return;
    }
    if (std::string message = error_message(chunk); !message.empty() || event.event == "error") {
      fail(unavailable(message.empty() ? event.data : message));
      return;
    }
    if (const json::value* usage = find(chunk, "usage")) take_usage(*usage);
    const json::value* choices = find(chunk, "choices");
    const json::array* items = choices == nullptr ? nullptr : choices->if_array();
    if (items != nullptr && !items->empty()) take_choice(items->front());
  }

  [[nodiscard]] bool finished() const { return done_ || !status_.ok(); }
  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  [[nodiscard]] Status end() const {
    if (!status_.ok()) return status_;
    if (!done_) return unavailable("the stream broke off before its end");
    return {};
  }
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

 private:
  void take_usage(const json::value& usage) {
    boost::system::error_code error;
    if (const json::value* count = find(usage, "prompt_tokens")) {
      summary_.prompt_tokens = count->to_number<std::int64_t>(error);
    }
    if (const json::value* count = find(usage, "completion_tokens")) {
      summary_.completion_tokens = count->to_number<std::int64_t>(error);
    }
  }
  void take_choice(const json::value& choice) {
    if (const json::value* reason = find(choice, "finish_reason"); reason && reason->is_string()) {
      summary_.finish_reason = text_of(*reason);
    }
    const json::value* delta = find(choice, "delta");
    const json::value* text = delta ? find(*delta, "content") : find(choice, "text");
    const std::string piece = text == nullptr ? std::string() : text_of(*text);
    if (piece.empty()) return;
    if (summary_.text.empty()) summary_.first_token_s = elapsed();
    summary_.text += piece;
    on_text_(piece);
  }

  StreamSummary& summary_;
  const std::function<void(std::string_view)>& on_text_;
  TimePoint start_;
  bool done_ = false;
  Status status_;
};

}  // namespace

Result<std::string> ApiClient::status_json(Duration timeout) const {
  return body_of(admin_.get("/status", timeout));
}

Result<StatusView> ApiClient::status(Duration timeout) const {
  ASSIGN_OR_RETURN(const std::string body, status_json(timeout));
  return parse_status(body);
}

Status ApiClient::drain(std::int64_t replica) const {
  const json::object body{{"replica", replica}};
  return body_of(admin_.post("/drain", json::serialize(body), seconds(10))).status();
}

Result<std::string> ApiClient::first_model() const {
  ASSIGN_OR_RETURN(const json::value body, json_of(http_.get("/v1/models", seconds(10))));
  const json::value* data = find(body, "data");
  const json::array* models = data == nullptr ? nullptr : data->if_array();
  const json::value* id =
      models == nullptr || models->empty() ? nullptr : find(models->front(), "id");
  if (id == nullptr) return not_found(str_cat(address().url(), " serves no model"));
  return text_of(*id);
}

Result<json::value> ApiClient::tokenize(const json::object& body) const {
  return json_of(http_.post("/tokenize", json::serialize(body), seconds(30)));
}

Result<std::vector<double>> ApiClient::score(const std::string& model, json::array tokens) const {
  const json::object body{{"model", model},  {"prompt", std::move(tokens)},
                          {"echo", true},    {"logprobs", 0},
                          {"max_tokens", 0}, {"return_tokens_as_token_ids", true}};
  ASSIGN_OR_RETURN(const json::value answer,
                   json_of(http_.post("/v1/completions", json::serialize(body), kScoreTimeout)));
  boost::system::error_code error;
  const json::value* found = answer.find_pointer("/choices/0/logprobs/token_logprobs", error);
  const json::array* items = found == nullptr ? nullptr : found->if_array();
  if (items == nullptr) return data_loss("the router's answer has no token_logprobs");
  std::vector<double> logprobs;
  for (const json::value& item : *items) {
    const bool first = logprobs.empty() && item.is_null();
    if (!first && !item.is_number()) {
      return data_loss(str_cat("token_logprobs[", logprobs.size(), "] is not a number"));
    }
    logprobs.push_back(first ? std::numeric_limits<double>::quiet_NaN()
                             : item.to_number<double>(error));
  }
  return logprobs;
}

Result<StreamSummary> ApiClient::stream(
    const std::string& path, json::object body, bool stop_on_interrupt,
    const std::function<void(std::string_view)>& on_text) const {
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  StreamSummary summary;
  StreamReader reader(summary, on_text);
  SseReader events;
  HttpClient::StreamOptions options;
  options.stop_on_interrupt = stop_on_interrupt;
  const auto on_piece = [&](std::string_view bytes) {
    Status pushed = events.push(bytes, [&](const SseEvent& event) { reader.on_event(event); });
    if (!pushed.ok()) reader.fail(std::move(pushed));
    return !reader.finished();
  };
  ASSIGN_OR_RETURN(const HttpResponse response,
                   http_.post_stream(path, json::serialize(body), options, on_piece));
  if (response.status != 200) return status_of(response);
  RETURN_IF_ERROR(reader.end());
  summary.total_s = reader.elapsed();
  return summary;
}

}  // namespace brigade::tools
