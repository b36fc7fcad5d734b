// SPDX-License-Identifier: Apache-2.0
#include <boost/json.hpp>
#include <iostream>
#include <iterator>

#include "common/base/strings.h"
#include "common/model/gguf.h"
#include "common/model/tokenizer.h"
#include "tools/commands.h"

namespace brigade::tools {

Status tokenize_here(const TokenizeOptions& options) {
  ASSIGN_OR_RETURN(const auto file, model::GgufFile::open(options.model));
  ASSIGN_OR_RETURN(const auto tokenizer, model::Tokenizer::load(*file));
  const std::string text = options.text == "-"
                               ? std::string(std::istreambuf_iterator<char>(std::cin), {})
                               : options.text;
  if (!model::is_valid_utf8(text)) return invalid_argument("the text is not valid UTF-8");
  std::vector<std::int32_t> ids;
  tokenizer->encode(text, options.special, ids);
  if (options.as_json) {
    const boost::json::object answer{{"count", ids.size()},
                                     {"tokens", boost::json::array(ids.begin(), ids.end())}};
    std::cout << boost::json::serialize(answer) << "\n";
    return {};
  }
  for (const std::int32_t id : ids) {
    std::cout << id << "\t" << quoted(tokenizer->token_bytes(id, /*special=*/true)) << "\n";
  }
  return {};
}

}  // namespace brigade::tools
