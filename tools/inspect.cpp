// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "common/base/strings.h"
#include "common/model/chat_template.h"
#include "common/model/gguf.h"
#include "common/model/tokenizer.h"

namespace brigade::tools {
namespace {

using model::GgufFile;
using model::ModelSpec;
using model::TensorInfo;

constexpr std::int64_t kStepTokens = 256;
constexpr std::int64_t kLogitRows = 16;  ///< of logits
constexpr std::int64_t kSumRows = 128;   ///< that are scored together
constexpr std::int64_t kUnusualContext = 1 << 21;
constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

std::uint64_t bytes_in_memory(const TensorInfo& tensor) {
  const double weights = static_cast<double>(tensor.rows) * static_cast<double>(tensor.cols);
  return static_cast<std::uint64_t>(weights * model::bits_in_memory(tensor.type) / 8);
}

void count_tensors(const GgufFile& file, Inspection& inspection) {
  std::map<model::TensorType, TypeUse> uses;
  for (const TensorInfo& tensor : file.tensors()) {
    TypeUse& use = uses[tensor.type];
    use.type = model::to_string(tensor.type);
    ++use.num_tensors;
    use.num_weights += tensor.rows * tensor.cols;
    use.file_bytes += tensor.bytes;
    use.memory_bytes += bytes_in_memory(tensor);
    inspection.num_weights += tensor.rows * tensor.cols;
  }
  for (auto& [type, use] : uses)
    inspection.types.push_back(std::move(use));
  std::stable_sort(inspection.types.begin(), inspection.types.end(),
                   [](const TypeUse& a, const TypeUse& b) { return a.file_bytes > b.file_bytes; });
}

/// Layer of a tensor called `blk.N.`, -1 of others.
std::int64_t layer_of(std::string_view name) {
  if (!name.starts_with("blk.")) return -1;
  std::int64_t layer = 0;
  for (const char c : name.substr(4)) {
    if (c == '.') return layer;
    if (c < '0' || c > '9' || layer > 100'000) return -1;
    layer = 10 * layer + (c - '0');
  }
  return -1;
}

/// How the tensors of a stage are shared out, one of its ranks.
struct Share {
  double heads = 1;
  double kv_heads = 1;  ///< of all ranks together more than 1 where KV heads are on several
  double ffn = 1;
  double expert_ffn = 1;
  double vocab = 1;
};

/// Bytes of a tensor that the rank holds. Vectors are whole on every rank.
double share_of(const TensorInfo& tensor, const ModelSpec& spec, const RankMemory& rank,
                const Share& share) {
  const auto bytes = static_cast<double>(bytes_in_memory(tensor));
  const std::int64_t layer = layer_of(tensor.name);
  const bool first = rank.layers.begin == 0;
  const bool last = rank.layers.end == spec.num_layers;
  if (layer >= 0) {
    if (!rank.layers.contains(layer)) return 0;
    const auto is = [&](std::string_view part) {
      return tensor.name.find(part) != std::string::npos;
    };
    if (tensor.rows == 1 || is(".ffn_gate_inp.")) return bytes;
    if (is(".ffn_")) return bytes * (spec.layer(layer).has_experts ? share.expert_ffn : share.ffn);
    if (is(".attn_k.") || is(".attn_v.")) return bytes * share.kv_heads;
    if (!is(".attn_qkv.")) return bytes * share.heads;
    const auto q = static_cast<double>(spec.num_heads);
    const auto kv = 2 * static_cast<double>(spec.num_kv_heads);
    return bytes * (q * share.heads + kv * share.kv_heads) / (q + kv);
  }
  if (tensor.name == "token_embd.weight") {
    return first || (last && spec.tied_embeddings) ? bytes * share.vocab : 0;
  }
  if (tensor.name == "output.weight") return last ? bytes * share.vocab : 0;
  return last ? bytes : 0;
}

std::uint64_t scratch_bytes(const ModelSpec& spec, const RankMemory& rank, const Share& share) {
  const auto part = [](std::int64_t size, double of) { return static_cast<double>(size) * of; };
  const double row = 2.0 * static_cast<double>(spec.hidden_size) +
                     part(2 * spec.num_heads * spec.head_dim, share.heads) +
                     part(2 * spec.num_kv_heads * spec.head_dim, share.kv_heads) +
                     part(3 * spec.intermediate_size, share.ffn) +
                     part(3 * spec.experts.intermediate_size, share.expert_ffn);
  const double logits =
      rank.layers.end == spec.num_layers
          ? static_cast<double>(kSumRows * spec.hidden_size + kLogitRows * spec.vocab_size)
          : 0.0;
  return static_cast<std::uint64_t>((kStepTokens * row + logits) * sizeof(float));
}

void count_ranks(const GgufFile& file, Inspection& inspection) {
  const ModelSpec& spec = *inspection.spec;
  const model::TensorSplit split = model::split_tensors(spec, inspection.tp);
  const Partition stages = model::split_layers(spec, inspection.pp);
  const std::int64_t context = (inspection.context + 15) / 16 * 16;
  const auto part = [](const Range& range, std::int64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(range.size()) / static_cast<double>(whole);
  };
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (std::size_t r = 0; r < inspection.tp; ++r) {
      RankMemory rank{.pp_stage = static_cast<std::int64_t>(stage),
                      .tp_rank = static_cast<std::int64_t>(r),
                      .layers = stages[stage]};
      const Range expert_ffn = split.expert_ffn.empty() ? Range{} : split.expert_ffn[r];
      const Share share{.heads = part(split.heads[r], spec.num_heads),
                        .kv_heads = part(split.kv_heads[r], spec.num_kv_heads),
                        .ffn = part(split.ffn[r], spec.intermediate_size),
                        .expert_ffn = part(expert_ffn, spec.experts.intermediate_size),
                        .vocab = part(split.vocab[r], spec.vocab_size)};
      double weights = 0;
      for (const TensorInfo& tensor : file.tensors())
        weights += share_of(tensor, spec, rank, share);
      rank.weight_bytes = static_cast<std::uint64_t>(weights);
      rank.kv_bytes = static_cast<std::uint64_t>(rank.layers.size() * split.kv_heads[r].size() *
                                                 spec.head_dim * 2 * 2 * context);
      rank.scratch_bytes = scratch_bytes(spec, rank, share);
      inspection.ranks.push_back(rank);
    }
  }
}

void read_tokenizer(const GgufFile& file, Inspection& inspection) {
  const auto add = [&](std::string what, std::string value) {
    inspection.tokenizer.emplace_back(std::move(what), std::move(value));
  };
  const auto kind = file.string("tokenizer.ggml.model");
  if (!kind.ok()) {
    inspection.warnings.push_back("there is no tokenizer in the file: it cannot be served");
    return;
  }
  add("model", std::string(*kind));
  const auto pre = file.string("tokenizer.ggml.pre");
  if (pre.ok()) add("pre-tokenizer", std::string(*pre));
  if (!pre.ok() && *kind == "gpt2") {
    inspection.warnings.push_back(
        "the pre-tokenizer is missing (tokenizer.ggml.pre): the file was converted by an old tool, "
        "and text may be cut into other tokens than the model was trained with");
  }
  const auto tokens = file.strings("tokenizer.ggml.tokens");
  if (tokens.ok()) add("tokens", str_cat(tokens->size()));
  const auto merges = file.metadata().find("tokenizer.ggml.merges");
  if (merges != file.metadata().end()) add("merges", describe(merges->second));
  for (const std::string_view which : {"bos", "eos", "eot", "padding"}) {
    const auto id = file.integer(str_cat("tokenizer.ggml.", which, "_token_id"));
    if (!id.ok()) continue;
    const bool known = tokens.ok() && *id >= 0 && *id < static_cast<std::int64_t>(tokens->size());
    if (known) {
      add(std::string(which), str_cat(*id, "  ", quoted((*tokens)[static_cast<std::size_t>(*id)])));
    } else {
      inspection.warnings.push_back(
          str_cat("the ", which, " token ", *id, " is not in the vocabulary"));
    }
  }
  const auto loaded = model::Tokenizer::load(file);
  if (!loaded.ok()) {
    inspection.warnings.push_back(
        str_cat("its tokenizer cannot be used: ", loaded.status().message()));
  } else if (inspection.spec && (*loaded)->vocab_size() != inspection.spec->vocab_size) {
    inspection.warnings.push_back(str_cat("the tokenizer has ", (*loaded)->vocab_size(),
                                          " tokens, the embedding table ",
                                          inspection.spec->vocab_size));
  }
}

void read_template(const GgufFile& file, Inspection& inspection) {
  const auto source = file.string(kTemplateKey);
  if (!source.ok()) {
    inspection.warnings.push_back("there is no chat template: texts can be completed, not chats");
    return;
  }
  inspection.template_bytes = source->size();
  const auto parsed = model::ChatTemplate::parse(*source);
  if (!parsed.ok()) {
    inspection.warnings.push_back(
        str_cat("its chat template has a fault: ", parsed.status().message()));
  }
}

void look_for_unusual(const GgufFile& file, Inspection& inspection) {
  const auto version = file.integer("general.quantization_version");
  if (version.ok() && *version != 2) {
    inspection.warnings.push_back(
        str_cat("general.quantization_version is ", *version, "; today's is 2"));
  }
  if (!inspection.spec) return;
  const ModelSpec& spec = *inspection.spec;
  if (spec.context_length > kUnusualContext) {
    inspection.warnings.push_back(
        str_cat("the context of ", spec.context_length, " tokens is unusually long"));
  }
  if (spec.rms_norm_eps > 1e-3F || spec.rms_norm_eps < 1e-8F) {
    inspection.warnings.push_back(
        str_cat("the norms' epsilon is ", spec.rms_norm_eps, "; 1e-5 and 1e-6 are usual"));
  }
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.rows > 1 && tensor.type == model::TensorType::kF32 && tensor.bytes > (64U << 20U)) {
      inspection.warnings.push_back(
          str_cat("tensor ", quoted(tensor.name), " is in F32: a smaller type is faster"));
    }
  }
}

}  // namespace

Result<Inspection> inspect_model(const InspectOptions& options) {
  ASSIGN_OR_RETURN(const auto file, GgufFile::open(options.path));
  Inspection inspection{.path = options.path,
                        .name = file->name(),
                        .version = file->version(),
                        .num_parts = file->num_parts(),
                        .file_bytes = file->file_bytes(),
                        .num_keys = file->metadata().size(),
                        .digest = file->digest(),
                        .tp = options.tp,
                        .pp = options.pp};
  const auto architecture = file->string("general.architecture");
  if (architecture.ok()) inspection.architecture = *architecture;
  count_tensors(*file, inspection);
  auto spec = model::read_spec(*file);
  if (spec.ok()) {
    inspection.spec = std::move(spec).value();
    RETURN_IF_ERROR(model::check_grid(*inspection.spec, options.tp, options.pp));
    inspection.context = options.context > 0 ? options.context : inspection.spec->context_length;
    count_ranks(*file, inspection);
  } else {
    inspection.warnings.push_back(str_cat("it cannot be served: ", spec.status().message()));
  }
  read_tokenizer(*file, inspection);
  read_template(*file, inspection);
  look_for_unusual(*file, inspection);
  return inspection;
}

Status inspect(const InspectOptions& options) {
  ASSIGN_OR_RETURN(const Inspection inspection, inspect_model(options));
  std::cout << (options.as_json ? inspection_json(inspection) : render_inspection(inspection));
  return {};
}

}  // namespace brigade::tools
