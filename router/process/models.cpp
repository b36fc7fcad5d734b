// SPDX-License-Identifier: Apache-2.0
#include "router/process/models.h"

#include <algorithm>
#include <filesystem>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/model/gguf.h"

namespace brigade::router {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

Result<std::shared_ptr<const ServedModel>> load(const std::string& path, const std::string& name,
                                                const RouterOptions& options) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::canonical(path, error);
  if (error) return not_found(error.message());
  auto served = std::make_shared<ServedModel>();
  // Absolute, because workers open it too, wherever they run.
  served->path = absolute.string();
  ASSIGN_OR_RETURN(const auto file, model::GgufFile::open(served->path));
  served->digest = file->digest();
  ASSIGN_OR_RETURN(served->spec, model::read_spec(*file));
  RETURN_IF_ERROR(model::check_grid(served->spec, options.topology.tp, options.topology.pp));
  ASSIGN_OR_RETURN(served->tokenizer, model::Tokenizer::load(*file));
  if (file->has(kTemplateKey)) {
    ASSIGN_OR_RETURN(const std::string_view source, file->string(kTemplateKey));
    auto chat_template = model::ChatTemplate::parse(source);
    // The model can still complete texts.
    if (!chat_template.ok()) {
      log_warning(str_cat(
          path, ": no chat, because its template has a fault: ", chat_template.status().message()));
    } else {
      served->chat_template = std::move(chat_template).value();
    }
  }
  served->name = name.empty() ? served->spec.name : name;
  served->max_context = served->spec.context_length;
  if (options.max_context != 0) {
    served->max_context = std::min<std::int64_t>(served->max_context, options.max_context);
  }
  return std::shared_ptr<const ServedModel>(std::move(served));
}

}  // namespace

Result<std::vector<std::shared_ptr<const ServedModel>>> load_models(const RouterOptions& options) {
  std::vector<std::shared_ptr<const ServedModel>> models;
  for (std::size_t i = 0; i < options.models.size(); ++i) {
    const std::string name = i < options.model_names.size() ? options.model_names[i] : "";
    auto served = load(options.models[i], name, options);
    if (!served.ok()) {
      return served.status().with_context(str_cat("model ", quoted(options.models[i], 200)));
    }
    for (const auto& other : models) {
      if (other->name == (*served)->name) {
        return invalid_argument(str_cat("two models are called ", quoted(other->name),
                                        ": tell them apart with --model-name"));
      }
    }
    models.push_back(std::move(served).value());
  }
  return models;
}

}  // namespace brigade::router
