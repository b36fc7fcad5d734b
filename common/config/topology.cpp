// SPDX-License-Identifier: Apache-2.0
#include "common/config/topology.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

#include "common/base/strings.h"
#include "common/config/topology_keys.h"

namespace brigade::config {
namespace {

constexpr std::uint32_t kMaxRanks = 4096;
constexpr std::size_t kMaxBucketEdges = 62;

using Weights = std::map<std::string, std::uint32_t>;

Status bad_value(std::string_view key, std::string_view expected) {
  return invalid_argument(str_cat("key ", quoted(key), ": expected ", expected));
}

template <typename Number>
Status in_range(const Key& key, Number value) {
  if (static_cast<double>(value) >= key.min && static_cast<double>(value) <= key.max) return {};
  return bad_value(key.name, str_cat("a number from ", key.min, " to ", key.max, ", got ", value));
}

template <typename Enum>
Status set_enum(const Key& key, std::string_view word, Enum& field) {
  std::string choices;
  for (Enum choice : enum_values<Enum>()) {
    if (to_string(choice) == word) {
      field = choice;
      return {};
    }
    choices += str_cat(choices.empty() ? "" : " or ", quoted(to_string(choice)));
  }
  return bad_value(key.name, str_cat(choices, ", got ", quoted(word)));
}

/// Sets the fields that a TOML table has.
struct NodeReader {
  const toml::table& root;
  Status status;
  toml::source_position place{};

  template <typename Field>
  void operator()(const Key& key, Field& field) {
    const toml::node* node = root.at_path(key.name).node();
    if (node == nullptr || !status.ok()) return;
    status = read(key, *node, field);
    place = node->source().begin;
  }

 private:
  static Status read(const Key& key, const toml::node& node, std::string& field) {
    auto value = node.value_exact<std::string>();
    if (!value) return bad_value(key.name, "a string");
    field = *value;
    return {};
  }
  static Status read(const Key& key, const toml::node& node, bool& field) {
    auto value = node.value_exact<bool>();
    if (!value) return bad_value(key.name, "true or false");
    field = *value;
    return {};
  }
  template <std::unsigned_integral Integer>
  static Status read(const Key& key, const toml::node& node, Integer& field) {
    auto value = node.value_exact<std::int64_t>();
    if (!value) return bad_value(key.name, "a whole number");
    RETURN_IF_ERROR(in_range(key, *value));
    field = static_cast<Integer>(*value);
    return {};
  }
  static Status read(const Key& key, const toml::node& node, double& field) {
    auto value = node.value<double>();
    if (!value) return bad_value(key.name, "a number");
    RETURN_IF_ERROR(in_range(key, *value));
    field = *value;
    return {};
  }
  template <typename Item>
  static Status read(const Key& key, const toml::node& node, std::vector<Item>& field) {
    const toml::array* items = node.as_array();
    if (items == nullptr) {
      return bad_value(
          key.name,
          str_cat("a list of ", std::is_same_v<Item, std::string> ? "strings" : "whole numbers"));
    }
    std::vector<Item> values;
    for (const toml::node& item : *items) {
      Item value{};
      RETURN_IF_ERROR(read(key, item, value));
      values.push_back(std::move(value));
    }
    field = std::move(values);
    return {};
  }
  static Status read(const Key& key, const toml::node& node, Weights& field) {
    const toml::table* items = node.as_table();
    if (items == nullptr) return bad_value(key.name, "a table of whole numbers");
    Weights values;
    for (const auto& [name, item] : *items)
      RETURN_IF_ERROR(read(key, item, values[std::string(name.str())]));
    field = std::move(values);
    return {};
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  static Status read(const Key& key, const toml::node& node, Enum& field) {
    auto word = node.value_exact<std::string>();
    if (!word) return bad_value(key.name, "a string");
    return set_enum(key, *word, field);
  }
};

/// Sets the one field that has the name, from text.
struct WordReader {
  std::string_view name;
  std::string_view word;
  bool found = false;
  Status status;

  template <typename Field>
  void operator()(const Key& key, Field& field) {
    if (key.name != name) return;
    found = true;
    status = read(key, word, field);
  }

 private:
  static Status read(const Key&, std::string_view text, std::string& field) {
    field = text;
    return {};
  }
  static Status read(const Key& key, std::string_view text, bool& field) {
    if (text != "true" && text != "false") {
      return bad_value(key.name, str_cat("true or false, got ", quoted(text)));
    }
    field = text == "true";
    return {};
  }
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  static Status read(const Key& key, std::string_view text, Number& field) {
    Number value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      return bad_value(key.name, str_cat("a number, got ", quoted(text)));
    }
    RETURN_IF_ERROR(in_range(key, value));
    field = value;
    return {};
  }
  template <typename Item>
  static Status read(const Key& key, std::string_view text, std::vector<Item>& field) {
    std::vector<Item> values;
    while (!text.empty()) {
      const std::size_t comma = text.find(',');
      Item value{};
      RETURN_IF_ERROR(read(key, text.substr(0, comma), value));
      values.push_back(std::move(value));
      text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    }
    field = std::move(values);
    return {};
  }
  static Status read(const Key& key, std::string_view text, Weights& field) {
    Weights values;
    while (!text.empty()) {
      const std::string_view item = text.substr(0, text.find(','));
      const std::size_t equals = item.rfind('=');
      if (equals == std::string_view::npos) {
        return bad_value(key.name, str_cat("NAME=WEIGHT, got ", quoted(item)));
      }
      std::uint32_t& value = values[std::string(item.substr(0, equals))];
      RETURN_IF_ERROR(read(key, item.substr(equals + 1), value));
      text.remove_prefix(std::min(item.size() + 1, text.size()));
    }
    field = std::move(values);
    return {};
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  static Status read(const Key& key, std::string_view text, Enum& field) {
    return set_enum(key, text, field);
  }
};

std::vector<std::string_view> all_keys() {
  std::vector<std::string_view> names;
  Topology scratch;
  visit_keys(scratch, [&](const Key& key, const auto&) { names.push_back(key.name); });
  return names;
}

Status unknown_key(std::string_view name) {
  std::string known;
  for (std::string_view key : all_keys())
    known += str_cat(known.empty() ? "" : ", ", key);
  return invalid_argument(str_cat("unknown key ", quoted(name), "; there are: ", known));
}

/// The first key of the table that no member of Topology stands for.
const toml::key* find_unknown(const toml::table& table, const std::string& prefix,
                              std::string& path) {
  const std::vector<std::string_view> known = all_keys();
  for (const auto& [key, node] : table) {
    path = prefix + std::string(key.str());
    bool is_table = false;
    bool is_key = false;
    for (std::string_view name : known) {
      is_key = is_key || name == path;
      is_table = is_table || name.starts_with(path + ".");
    }
    if (is_key) continue;
    if (!is_table || !node.is_table()) return &key;
    if (const toml::key* inner = find_unknown(*node.as_table(), path + ".", path)) return inner;
  }
  return nullptr;
}

}  // namespace

Result<Topology> parse_topology(std::string_view text, std::string_view source_name) {
  auto at = [&](const toml::source_position& place) {
    return str_cat(source_name, ":", place.line, ":", place.column);
  };
  toml::table root;
  try {
    root = toml::parse(text, source_name);
  } catch (const toml::parse_error& error) {
    return invalid_argument(str_cat(at(error.source().begin), ": ", error.description()));
  }
  std::string path;
  if (const toml::key* key = find_unknown(root, "", path)) {
    return unknown_key(path).with_context(at(key->source().begin));
  }
  Topology topology;
  NodeReader reader{.root = root};
  visit_keys(topology, reader);
  if (!reader.status.ok()) return reader.status.with_context(at(reader.place));
  Status whole = check(topology);
  if (!whole.ok()) return whole.with_context(source_name);
  return topology;
}

Result<Topology> load_topology(const std::string& path) {
  std::ifstream file(path);
  if (!file) return not_found(str_cat("cannot read the topology file ", quoted(path)));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_topology(text, path);
}

Status set_key(Topology& topology, std::string_view key, std::string_view value) {
  WordReader reader{.name = key, .word = value};
  visit_keys(topology, reader);
  return reader.found ? reader.status : unknown_key(key);
}

Status check(const Topology& topology) {
  const std::uint64_t ranks = std::uint64_t{topology.tp} * topology.pp * topology.dp;
  if (ranks > kMaxRanks) {
    return invalid_argument(str_cat("tp ", topology.tp, " x pp ", topology.pp, " x dp ",
                                    topology.dp, " is ", ranks, " workers; at most ", kMaxRanks));
  }
  const std::vector<std::uint32_t>& edges = topology.limits.bucket_edges;
  if (edges.size() > kMaxBucketEdges ||
      std::adjacent_find(edges.begin(), edges.end(), std::greater_equal<>()) != edges.end()) {
    return bad_value("limits.bucket_edges",
                     str_cat("at most ", kMaxBucketEdges, " rising numbers"));
  }
  return {};
}

namespace {

template <typename Field>
void append_value(std::ostream& out, const Field& field) {
  if constexpr (std::is_enum_v<Field>) {
    out << '"' << to_string(field) << '"';
  } else if constexpr (std::is_same_v<Field, bool>) {
    out << (field ? "true" : "false");
  } else if constexpr (std::is_arithmetic_v<Field>) {
    out << field;
  } else if constexpr (std::is_same_v<Field, std::string>) {
    const toml::value<std::string> value(field);
    out << toml::toml_formatter(value, toml::format_flags::none);
  } else if constexpr (std::is_same_v<Field, Weights>) {
    toml::table weights;
    for (const auto& [tenant, weight] : field)
      weights.insert(tenant, static_cast<std::int64_t>(weight));
    weights.is_inline(true);
    out << toml::toml_formatter(weights, toml::format_flags::none);
  } else {
    out << '[';
    for (std::size_t i = 0; i < field.size(); ++i) {
      if (i > 0) out << ", ";
      append_value(out, field[i]);
    }
    out << ']';
  }
}

}  // namespace

std::string to_toml(const Topology& topology) {
  std::ostringstream out;
  std::string table;
  Topology copy = topology;
  visit_keys(copy, [&](const Key& key, const auto& field) {
    std::string_view name = key.name;
    if (const std::size_t dot = name.find('.'); dot != std::string_view::npos) {
      if (name.substr(0, dot) != table) {
        table = name.substr(0, dot);
        out << "\n[" << table << "]\n";
      }
      name.remove_prefix(dot + 1);
    }
    out << "# " << key.help << "\n" << name << " = ";
    append_value(out, field);
    out << "\n";
  });
  return out.str();
}

std::string_view to_string(Device device) {
  return device == Device::kCpu ? "cpu" : "sim";
}
std::string_view to_string(wire::ActivationMode mode) {
  return mode == wire::ActivationMode::kInt8 ? "int8" : "float";
}
std::string_view to_string(wire::KvType type) {
  return type == wire::KvType::kF16 ? "f16" : "f32";
}

}  // namespace brigade::config
