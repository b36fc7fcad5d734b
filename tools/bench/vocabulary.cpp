// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/vocabulary.h"

#include <algorithm>
#include <sstream>

#include "common/base/strings.h"

namespace brigade::tools {
namespace {

namespace json = boost::json;

constexpr const char* kText =
    "the of and to in is that it was for on are as with they be at one have this from by hot word "
    "but what some you had we can out other were all there when up use your how said an each she "
    "which do their time if will way about many then them write would like so these her long make "
    "thing see him two has look more day could go come did number sound no most people my over "
    "know water than call first who may down side been now find any new work part take get place "
    "made live where after back little only round man year came show every good me give our under "
    "name very through just form sentence great think say help low line differ turn cause much "
    "mean before move right boy old too same tell does set three want air well also play small end "
    "put home read hand port large spell add even land here must big high such follow act why ask "
    "men change went light kind off need house picture try us again animal point mother world near "
    "build self earth father head stand own page should country found answer school grow study "
    "still learn plant cover food sun four between state keep eye never last let thought city tree";

}  // namespace

Result<Vocabulary> Vocabulary::fetch(const ApiClient& api, const std::string& model) {
  Vocabulary vocabulary;
  std::istringstream text(kText);
  for (std::string word; text >> word;)
    vocabulary.words.push_back(" " + word);
  const json::object body{
      {"model", model}, {"prompt", str_cat(" ", kText)}, {"add_special_tokens", false}};
  Result<json::value> answer = api.tokenize(body);
  if (!answer.ok()) return answer.status().with_context("making prompts needs /tokenize");
  const json::object* object = answer->if_object();
  const json::value* tokens = object == nullptr ? nullptr : object->if_contains("tokens");
  const json::array* ids = tokens == nullptr ? nullptr : tokens->if_array();
  if (ids == nullptr || ids->empty()) return data_loss("the answer of /tokenize has no tokens");
  for (const json::value& id : *ids) {
    boost::system::error_code error;
    const auto number = id.to_number<std::int32_t>(error);
    if (error) return data_loss("the answer of /tokenize has a token that is no number");
    vocabulary.ids.push_back(number);
  }
  vocabulary.tokens_per_word =
      static_cast<double>(vocabulary.ids.size()) / static_cast<double>(vocabulary.words.size());
  std::ranges::sort(vocabulary.ids);
  vocabulary.ids.erase(std::unique(vocabulary.ids.begin(), vocabulary.ids.end()),
                       vocabulary.ids.end());
  return vocabulary;
}

}  // namespace brigade::tools
