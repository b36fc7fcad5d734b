// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect.h"

#include <doctest/doctest.h>

#include <boost/json.hpp>

#include "tests/support/tiny_model.h"

namespace brigade::tools {
namespace {

/// The tiny model's file, and what inspect says of it.
Inspection inspect_tiny(std::uint32_t tp, std::uint32_t pp, std::int64_t context = 0) {
  const test::TempFile file(tiny_model_builder(test::TinyModel{}).build());
  auto inspection = inspect_model({.path = file.path(), .tp = tp, .pp = pp, .context = context});
  REQUIRE_MESSAGE(inspection.ok(), inspection.status().message());
  return std::move(inspection).value();
}

std::uint64_t weights_of_all(const Inspection& inspection) {
  std::uint64_t sum = 0;
  for (const RankMemory& rank : inspection.ranks)
    sum += rank.weight_bytes;
  return sum;
}

}  // namespace

TEST_CASE("a model's tensors are counted by type, and its ranks hold all of them") {
  const Inspection whole = inspect_tiny(1, 1);
  REQUIRE(whole.ranks.size() == 1);
  std::int64_t weights = 0;
  std::uint64_t bytes = 0;
  for (const TypeUse& use : whole.types) {
    weights += use.num_weights;
    bytes += use.memory_bytes;
  }
  CHECK(weights == whole.num_weights);
  CHECK(whole.ranks[0].weight_bytes == bytes);
  const Inspection cut = inspect_tiny(3, 2);
  CHECK(cut.ranks.size() == 6);
  // Norms are on every rank, a tied table on the first and the last stage.
  CHECK(weights_of_all(cut) > bytes);
  CHECK(weights_of_all(cut) < 2 * bytes);
}

TEST_CASE("KV is counted for the context asked for, in whole blocks") {
  const Inspection inspection = inspect_tiny(1, 1, 17);
  const model::ModelSpec& spec = *inspection.spec;
  CHECK(inspection.ranks[0].kv_bytes ==
        static_cast<std::uint64_t>(spec.num_layers * spec.num_kv_heads * spec.head_dim * 4 * 32));
}

TEST_CASE("what keeps a file from being served is a warning, in the text and in JSON") {
  const test::TempFile file(
      test::GgufBuilder().add_string("general.architecture", "abacus").build());
  const auto inspection = inspect_model({.path = file.path()});
  REQUIRE(inspection.ok());
  CHECK_FALSE(inspection->spec.has_value());
  CHECK(render_inspection(*inspection).find("! it cannot be served") != std::string::npos);
  const boost::json::value root = boost::json::parse(inspection_json(*inspection));
  CHECK(root.at("model").is_null());
  CHECK(root.at("architecture").as_string() == "abacus");
  CHECK(root.at("warnings").as_array().size() >= 2);
}

TEST_CASE("a grid that does not fit and a file that is no model are refused") {
  const test::TempFile file(tiny_model_builder(test::TinyModel{}).build());
  CHECK_FALSE(inspect_model({.path = file.path(), .tp = 64}).ok());
  const test::TempFile page("<html>not found</html>");
  const auto refused = inspect_model({.path = page.path()});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().message().find("a web page") != std::string::npos);
}

}  // namespace brigade::tools
