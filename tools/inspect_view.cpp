// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <iomanip>
#include <sstream>

#include "common/base/memory.h"
#include "common/base/strings.h"
#include "tools/inspect.h"

namespace brigade::tools {
namespace {

namespace json = boost::json;

std::string decimal(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

/// 1234567 as 1,234,567.
std::string grouped(std::int64_t value) {
  std::string digits = str_cat(value);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

/// 135 million, 35.1 thousand.
std::string count(std::int64_t value) {
  constexpr std::array<std::string_view, 4> kUnits = {"", " thousand", " million", " billion"};
  auto scaled = static_cast<double>(value);
  std::size_t unit = 0;
  while (scaled >= 1000 && unit + 1 < kUnits.size()) {
    scaled /= 1000;
    ++unit;
  }
  return str_cat(decimal(scaled, unit == 0 || scaled >= 100 ? 0 : 1), kUnits[unit]);
}

/// Columns as wide as their widest cell; the first to the left, others to the right.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::ostringstream out;
  for (const auto& row : rows) {
    out << "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      out << (i == 0 ? std::left : std::right) << std::setw(static_cast<int>(widths[i])) << row[i];
      if (i + 1 < row.size()) out << "   ";
    }
    out << "\n";
  }
  return out.str();
}

void render_model(const Inspection& x, std::ostream& out) {
  out << x.name << "\n";
  out << "  file          GGUF version " << x.version << ", " << memory_text(x.file_bytes);
  if (x.num_parts > 1) out << " in " << x.num_parts << " parts";
  out << ", " << x.num_keys << " keys\n";
  out << "  architecture  " << (x.architecture.empty() ? "not named" : x.architecture) << "\n";
  out << "  parameters    " << count(x.num_weights) << "\n";
  if (!x.spec) return;
  const model::ModelSpec& spec = *x.spec;
  out << "  context       " << grouped(spec.context_length) << " tokens\n";
  out << "  shape         " << spec.num_layers << " layers, hidden " << grouped(spec.hidden_size)
      << ", FFN " << grouped(spec.intermediate_size) << ", " << spec.num_heads << " heads of "
      << spec.head_dim << " over " << spec.num_kv_heads << " KV heads\n";
  out << "  vocabulary    " << grouped(spec.vocab_size)
      << (spec.tied_embeddings ? ", the head is the embedding table\n" : "\n");
}

void render_types(const Inspection& x, std::ostream& out) {
  std::vector<std::vector<std::string>> rows = {
      {"type", "tensors", "parameters", "in the file", "in memory", "bits in memory"}};
  for (const TypeUse& use : x.types) {
    const double weights = static_cast<double>(std::max<std::int64_t>(1, use.num_weights));
    rows.push_back({use.type, str_cat(use.num_tensors), count(use.num_weights),
                    memory_text(use.file_bytes), memory_text(use.memory_bytes),
                    decimal(8.0 * static_cast<double>(use.memory_bytes) / weights, 2)});
  }
  out << "\nTensors\n" << table(rows);
}

void render_ranks(const Inspection& x, std::ostream& out) {
  if (x.ranks.empty()) return;
  std::vector<std::vector<std::string>> rows = {
      {"stage", "rank", "layers", "weights", "KV", "work space", "together"}};
  std::uint64_t sum = 0;
  for (const RankMemory& rank : x.ranks) {
    rows.push_back({str_cat(rank.pp_stage), str_cat(rank.tp_rank),
                    str_cat(rank.layers.begin, "-", rank.layers.end - 1),
                    memory_text(rank.weight_bytes), memory_text(rank.kv_bytes),
                    memory_text(rank.scratch_bytes), memory_text(rank.total())});
    sum += rank.total();
  }
  out << "\nMemory of each rank: tp " << x.tp << ", pp " << x.pp << ", KV for "
      << grouped(x.context) << " tokens in f16\n"
      << table(rows);
  if (x.ranks.size() > 1) out << "  " << memory_text(sum) << " in all\n";
}

json::array pair_of(const Range& range) {
  return {range.begin, range.end};
}

json::object spec_json(const model::ModelSpec& spec) {
  return {{"context_length", spec.context_length},
          {"num_layers", spec.num_layers},
          {"hidden_size", spec.hidden_size},
          {"intermediate_size", spec.intermediate_size},
          {"num_heads", spec.num_heads},
          {"num_kv_heads", spec.num_kv_heads},
          {"head_dim", spec.head_dim},
          {"vocab_size", spec.vocab_size},
          {"tied_embeddings", spec.tied_embeddings}};
}

}  // namespace

std::string render_inspection(const Inspection& x) {
  std::ostringstream out;
  render_model(x, out);
  render_types(x, out);
  render_ranks(x, out);
  if (!x.tokenizer.empty()) {
    out << "\nTokenizer\n";
    for (const auto& [what, value] : x.tokenizer)
      out << "  " << std::left << std::setw(14) << what << value << "\n";
  }
  out << "\nChat template\n  "
      << (x.template_bytes
              ? str_cat(grouped(static_cast<std::int64_t>(*x.template_bytes)), " characters")
              : "none")
      << "\n";
  if (!x.warnings.empty()) {
    out << "\nWarnings\n";
    for (const std::string& warning : x.warnings)
      out << "  ! " << warning << "\n";
  }
  return out.str();
}

std::string inspection_json(const Inspection& x) {
  json::array types;
  for (const TypeUse& use : x.types) {
    types.push_back(json::object{{"type", use.type},
                                 {"num_tensors", use.num_tensors},
                                 {"num_parameters", use.num_weights},
                                 {"file_bytes", use.file_bytes},
                                 {"memory_bytes", use.memory_bytes}});
  }
  json::array ranks;
  for (const RankMemory& rank : x.ranks) {
    ranks.push_back(json::object{{"pp_stage", rank.pp_stage},
                                 {"tp_rank", rank.tp_rank},
                                 {"layers", pair_of(rank.layers)},
                                 {"weight_bytes", rank.weight_bytes},
                                 {"kv_bytes", rank.kv_bytes},
                                 {"scratch_bytes", rank.scratch_bytes}});
  }
  json::object tokenizer;
  for (const auto& [what, value] : x.tokenizer)
    tokenizer[what] = value;
  json::object object{{"path", x.path},
                      {"name", x.name},
                      {"gguf_version", x.version},
                      {"num_parts", x.num_parts},
                      {"file_bytes", x.file_bytes},
                      {"digest", x.digest},
                      {"architecture", x.architecture},
                      {"num_parameters", x.num_weights},
                      {"tensors", std::move(types)},
                      {"tp", x.tp},
                      {"pp", x.pp},
                      {"context", x.context},
                      {"ranks", std::move(ranks)},
                      {"tokenizer", std::move(tokenizer)},
                      {"chat_template", x.template_bytes.has_value()},
                      {"warnings", json::array(x.warnings.begin(), x.warnings.end())}};
  object["model"] = x.spec ? json::value(spec_json(*x.spec)) : json::value(nullptr);
  return json::serialize(object) + "\n";
}

}  // namespace brigade::tools
