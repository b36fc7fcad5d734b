// SPDX-License-Identifier: Apache-2.0
#include "common/config/topology.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace brigade::config {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("an empty file gives the defaults") {
  auto topology = parse_topology("", "empty");
  REQUIRE(topology.ok());
  CHECK(*topology == Topology{});
}

TEST_CASE("every kind of value is read") {
  auto topology = parse_topology(
      "model = \"m.gguf\"\ntp = 3\npp = 2\ndp = 4\ndevice = \"sim\"\nactivations = \"float\"\n"
      "kv = \"f32\"\nallow_remote_http = true\n[limits]\nbucket_edges = [1, 20]\nmax_queued_tokens "
      "= 5000000000\ntenant_weights = { alice = 4, \"bob b\" = 2 }\n"
      "[sim]\nbase_us = 5\njitter = 0.25\n",
      "t.toml");
  REQUIRE_MESSAGE(topology.ok(), topology.status().message());
  CHECK(topology->model == "m.gguf");
  CHECK(topology->num_ranks() == 24);
  CHECK(topology->device == Device::kSim);
  CHECK(topology->activations == wire::ActivationMode::kFloat);
  CHECK(topology->kv == wire::KvType::kF32);
  CHECK(topology->allow_remote_http);
  CHECK(topology->limits.bucket_edges == std::vector<std::uint32_t>{1, 20});
  CHECK(topology->limits.max_queued_tokens == 5'000'000'000U);
  CHECK(topology->limits.tenant_weights ==
        std::map<std::string, std::uint32_t>{{"alice", 4}, {"bob b", 2}});
  CHECK(topology->sim.base_us == 5);
  CHECK(topology->sim.jitter == 0.25);
}

TEST_CASE("an unknown key is an error that names it, its line, and what there is") {
  struct Case {
    const char* toml;
    const char* place;
    const char* key;
  };
  for (const Case& c : {Case{"tp = 1\nttp = 2\n", "t.toml:2:1", "\"ttp\""},
                        Case{"[limits]\nstep_token = 2\n", "t.toml:2:1", "\"limits.step_token\""},
                        Case{"[limit]\nstep_tokens = 2\n", "t.toml:1:2", "\"limit\""},
                        Case{"limits = 3\n", "t.toml:1:1", "\"limits\""}}) {
    CAPTURE(c.toml);
    auto topology = parse_topology(c.toml, "t.toml");
    REQUIRE(!topology.ok());
    CHECK(topology.status().code() == StatusCode::kInvalidArgument);
    const std::string& message = topology.status().message();
    CAPTURE(message);
    CHECK(contains(message, c.place));
    CHECK(contains(message, c.key));
    CHECK(contains(message, "limits.step_tokens"));
  }
}

TEST_CASE("a wrong value is an error that names key, line and what is expected") {
  struct Case {
    const char* toml;
    const char* place;
    const char* expected;
  };
  for (const Case& c :
       {Case{"\ntp = \"two\"", "t.toml:2:", "\"tp\": expected a whole number"},
        Case{"tp = 0", "t.toml:1:", "from 1 to 1024, got 0"},
        Case{"tp = -3", "t.toml:1:", "got -3"}, Case{"tp = 2.5", "t.toml:1:", "whole number"},
        Case{"device = \"gpu\"", "t.toml:1:", "\"cpu\" or \"sim\", got \"gpu\""},
        Case{"kv = 16", "t.toml:1:", "\"kv\": expected a string"},
        Case{"timeouts.heartbeat_ms = 1000", "t.toml:1:", "from 3000 to"},
        Case{"allow_remote_http = 1", "t.toml:1:", "true or false"},
        Case{"[sim]\njitter = nan", "t.toml:2:", "from 0 to 1"},
        Case{"limits.bucket_edges = [0]", "t.toml:1:", "limits.bucket_edges"},
        Case{"limits.bucket_edges = [20, 20]", "t.toml", "62 rising numbers"},
        Case{"limits.tenant_weights = 3", "t.toml:1:", "a table of whole numbers"},
        Case{"limits.tenant_weights.a = 0", "t.toml:1:", "from 1 to 1000, got 0"},
        Case{"limits.tenant_weights.a = \"x\"", "t.toml:1:", "limits.tenant_weights"},
        Case{"tp = 1024\npp = 1024", "t.toml", "1048576 workers; at most 4096"},
        Case{"tp = ", "t.toml:1:", "t.toml"}}) {
    CAPTURE(c.toml);
    auto topology = parse_topology(c.toml, "t.toml");
    REQUIRE(!topology.ok());
    const std::string& message = topology.status().message();
    CAPTURE(message);
    CHECK(contains(message, c.place));
    CHECK(contains(message, c.expected));
  }
}

TEST_CASE("a word of the command line sets any key, by the same rules") {
  Topology topology;
  CHECK(set_key(topology, "tp", "3").ok());
  CHECK(set_key(topology, "http", "[::1]:0").ok());
  CHECK(set_key(topology, "sim.jitter", "0.5").ok());
  CHECK(set_key(topology, "allow_remote_http", "true").ok());
  CHECK(topology.allow_remote_http);
  CHECK(!set_key(topology, "allow_remote_http", "yes").ok());
  CHECK(set_key(topology, "limits.bucket_edges", "16,64").ok());
  CHECK(set_key(topology, "limits.tenant_weights", "a=3,b=c=4").ok());
  CHECK(topology.limits.tenant_weights ==
        std::map<std::string, std::uint32_t>{{"a", 3}, {"b=c", 4}});
  CHECK(!set_key(topology, "limits.tenant_weights", "a").ok());
  CHECK(!set_key(topology, "limits.tenant_weights", "a=0").ok());
  CHECK(topology.tp == 3);
  CHECK(topology.http == "[::1]:0");
  CHECK(topology.sim.jitter == 0.5);
  CHECK(topology.limits.bucket_edges == std::vector<std::uint32_t>{16, 64});
  for (const char* word : {"", "x", "1x", "-1", "0", "99999999999999999999"}) {
    CAPTURE(word);
    CHECK(!set_key(topology, "tp", word).ok());
  }
  CHECK(contains(set_key(topology, "tpp", "1").message(), "unknown key \"tpp\""));
  CHECK(topology.tp == 3);
}

TEST_CASE("what to_toml writes is read back as it was") {
  Topology topology;
  topology.model = "a \"b\"\\c.gguf";
  topology.tp = 2;
  topology.device = Device::kSim;
  topology.limits.bucket_edges = {};
  topology.limits.tenant_weights = {{"", 2}, {"a \"b\"", 1000}};
  topology.sim.jitter = 0.125;
  auto again = parse_topology(to_toml(topology), "again");
  REQUIRE_MESSAGE(again.ok(), again.status().message());
  CHECK(*again == topology);
}

TEST_CASE("configs/reference.toml lists every key with its default") {
  const std::string text = read_file("configs/reference.toml");
  const std::string keys = text.substr(text.find("\n\n") + 2);  // past the file's own heading
  CHECK(keys == to_toml(Topology{}));
}

TEST_CASE("every topology in configs is valid") {
  int num_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("configs")) {
    if (entry.path().extension() != ".toml") continue;
    ++num_files;
    auto topology = load_topology(entry.path().string());
    CHECK_MESSAGE(topology.ok(), topology.status().message());
  }
  CHECK(num_files >= 8);
}

TEST_CASE("a file that is not there is named") {
  auto topology = load_topology("configs/none.toml");
  REQUIRE(!topology.ok());
  CHECK(topology.status().code() == StatusCode::kNotFound);
  CHECK(contains(topology.status().message(), "configs/none.toml"));
}

}  // namespace brigade::config
