// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden.h"

#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace brigade::test {

std::vector<GoldenPrompt> read_golden() {
  namespace json = boost::json;
  std::vector<GoldenPrompt> prompts;
  std::ifstream in("tests/golden/smollm2-135m-q4_1/greedy.jsonl");
  for (std::string line; std::getline(in, line);) {
    const json::object object = json::parse(line).as_object();
    const auto get = [&object]<typename T>(const char* key, T& value) {
      value = json::value_to<T>(object.at(key));
    };
    GoldenPrompt prompt;
    get("id", prompt.id);
    get("prompt_ids", prompt.prompt_ids);
    get("greedy_ids", prompt.greedy_ids);
    get("top_ids", prompt.top_ids);
    get("top_logits", prompt.top_logits);
    get("first_logit_ids", prompt.first_logit_ids);
    get("first_logits", prompt.first_logits);
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

bool full_sweep() {
  const char* set = std::getenv("BRIGADE_FULL");
  return set != nullptr && std::string_view(set) == "1";
}

}  // namespace brigade::test
