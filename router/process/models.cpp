// SPDX-License-Identifier: Apache-2.0
#include "router/process/models.h"

#include <algorithm>

#include "common/base/strings.h"
#include "router/process/served_model.h"

namespace brigade::router {
namespace {

Result<std::shared_ptr<const ServedModel>> load(const std::string& path, const std::string& name,
                                                const RouterOptions& options) {
  ASSIGN_OR_RETURN(auto served, load_served_model(path));
  RETURN_IF_ERROR(model::check_grid(served->spec, options.topology.tp, options.topology.pp));
  if (!name.empty()) served->name = name;
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
