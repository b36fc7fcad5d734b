// SPDX-License-Identifier: Apache-2.0
#include "router/process/served_model.h"

#include <filesystem>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/model/gguf.h"

namespace brigade::router {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

}  // namespace

Result<std::shared_ptr<ServedModel>> load_served_model(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::canonical(path, error);
  if (error) return not_found(error.message());
  auto served = std::make_shared<ServedModel>();
  // Absolute, because workers open it too, wherever they run.
  served->path = absolute.string();
  ASSIGN_OR_RETURN(const auto file, model::GgufFile::open(served->path));
  served->digest = file->digest();
  ASSIGN_OR_RETURN(served->spec, model::read_spec(*file));
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
  served->name = served->spec.name;
  served->max_context = served->spec.context_length;
  return served;
}

}  // namespace brigade::router
