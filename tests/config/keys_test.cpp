// The account of every key: it has its effect, and keys.txt names the test that fails when it is ignored; or it is
// refused; or the configuration is told that nothing reads it.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <sstream>

#include "core/config/load/defaults.hpp"
#include "core/config/typed/run_config.hpp"
#include "tests/config/support.hpp"

using namespace config_test;
using namespace hexad::config;

namespace {

namespace fs = std::filesystem;

fs::path tests_dir() {
  const char* source = std::getenv("HEXAD_SOURCE_DIR");
  return fs::path(source ? source : ".") / "tests";
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A block of keys.txt: a heading at the line's start, and below it the keys.
struct Block {
  std::string heading;
  std::vector<std::string> keys;
};

std::vector<Block> account() {
  std::vector<Block> blocks;
  std::istringstream lines(text_of(tests_dir() / "config/keys.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != ' ') {
      blocks.push_back({line, {}});
      continue;
    }
    REQUIRE_MESSAGE(!blocks.empty(), "keys before a heading: " << line);
    std::istringstream words(line);
    for (std::string key; words >> key;) blocks.back().keys.push_back(key);
  }
  return blocks;
}

constexpr const char* kDetails = "details of ";

const Schema& schema() { return every_schema(); }

// Everything that can have a value of its own.
bool is_leaf(const Key& key) { return key.open || schema().children(key.path).empty(); }

std::vector<Key> leaves(Status status) {
  std::vector<Key> result;
  for (const Key& key : schema().keys()) {
    if (is_leaf(key) && key.status == status) result.push_back(key);
  }
  return result;
}

// Every acting key of every plugin that is installed, in the block that holds its keys; of an environment that block is
// named after the plugin.
std::vector<std::string> keys_of_plugins() {
  std::vector<std::string> result;
  Catalog catalog{hexad::yaml::Node(hexad::yaml::Node::Map{})};
  for (const Installed& each : catalog.all()) {
    if (!each.declaration()) continue;
    const std::vector<Key>& keys = each.declaration()->keys;
    std::string block = usual_block(each.kind(), each.name());
    if (block.empty()) block = "env." + each.name();
    for (const Key& key : keys) {
      const auto below = [&](const Key& other) { return other.path.starts_with(key.path + "."); };
      if (key.status == Status::effective && (key.open || std::ranges::none_of(keys, below)))
        result.push_back(block + "." + key.path);
    }
  }
  return result;
}

// "plugins/native: a name" -> true if a file below tests/plugins/native has a test case of that name.
bool has_case(const std::string& heading) {
  const size_t colon = heading.find(": ");
  if (colon == std::string::npos) return false;
  const fs::path folder = tests_dir() / heading.substr(0, colon);
  const std::string name = "\"" + heading.substr(colon + 2) + "\"", wanted = "TEST_CASE(" + name,
                    of_fixture = "TEST_CASE_FIXTURE(Fixture, " + name;
  static std::map<fs::path, std::string> sources;
  std::string& text = sources[folder];
  if (text.empty() && fs::is_directory(folder)) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".cpp") text += text_of(entry.path());
    }
  }
  return text.find(wanted) != std::string::npos || text.find(of_fixture) != std::string::npos;
}

bool is_off(const Key& key, const hexad::yaml::Node& value) {
  for (const std::string& off : key.off) {
    if (same_value(default_value(off), value)) return true;
  }
  return !key.default_yaml.empty() && same_value(default_value(key.default_yaml), value);
}

// A value, as YAML, that the key takes and that is neither its default nor one that leaves its feature off.
std::string other_value(const Key& key) {
  std::vector<std::string> candidates;
  const auto add = [&](Kinds kind, std::initializer_list<const char*> texts) {
    if (key.kinds & kind) candidates.insert(candidates.end(), texts.begin(), texts.end());
  };
  // The last of them: the first may be what an interpolated default comes to.
  candidates.assign(key.choices.rbegin(), key.choices.rend());
  add(kBool, {"true", "false"});
  add(kInt, {"1", "7", "2"});
  add(kFloat, {"0.5", "7.5"});
  if (key.choices.empty()) add(kText, {"other"});
  add(kMap, {"{other: 1}"});
  add(kList, {key.element_kinds & kText ? "[other]" : "[1]"});
  for (const std::string& text : candidates) {
    const hexad::yaml::Node value = default_value(text);
    const bool inside = !value.is_number() || (value.as_double() >= key.minimum && value.as_double() <= key.maximum);
    if (inside && !is_off(key, value)) return text;
  }
  FAIL("no other value for " << key.path);
  return "";
}

// What chooses the plugin whose key it is.
Overrides chooses(const Key& key) {
  if (key.plugin == "megatron" || key.plugin == "dtensor") return {"++policy.backend=" + key.plugin};
  if (key.plugin == "openai_bridge") return {"++policy.generation.backend=openai"};
  if (key.plugin == "sglang_bridge") return {"++policy.generation.backend=sglang"};
  if (key.plugin == "vllm_bridge") return {"++policy.generation.backend=vllm"};
  return {};
}

// What is said about a configuration in which the key has that value.
std::vector<Problem> said_about(const Key& key, const std::string& value) {
  Overrides overrides = chooses(key);
  overrides.push_back("++" + key.path + "=" + value);
  const Files files("a.yaml", kValid);
  return check(load_with_defaults(files / "a.yaml", overrides));
}

bool says(const std::vector<Problem>& problems, bool error, const std::string& key, const std::string& words) {
  return std::ranges::any_of(problems, [&](const Problem& problem) {
    return problem.is_error() == error && problem.key == key && problem.message.find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("every key that has an effect names the test that fails when it is ignored") {
  std::map<std::string, std::string> proofs;
  const std::vector<std::string> of_plugins = keys_of_plugins();
  const auto is_key = [&](const std::string& key) {
    return schema().find(key) || schema().is_free(key) || std::ranges::find(of_plugins, key) != of_plugins.end();
  };
  for (const Block& block : account()) {
    if (block.heading.starts_with(kDetails)) continue;
    CHECK_MESSAGE(has_case(block.heading), "keys.txt names no test case that there is: " << block.heading);
    CHECK_MESSAGE(!block.keys.empty(), block.heading);
    for (const std::string& key : block.keys) {
      CHECK_MESSAGE(proofs.emplace(key, block.heading).second, key << " is there twice");
      CHECK_MESSAGE(is_key(key), key << " is no key of the schema");
    }
  }
  for (const Key& key : leaves(Status::effective)) {
    CHECK_MESSAGE(proofs.contains(key.path), key.path << ": keys.txt names no test that fails when it is ignored");
  }
  CHECK(of_plugins.size() > 150);
  for (const std::string& key : of_plugins)
    CHECK_MESSAGE(proofs.contains(key), key << ": keys.txt names no test that fails when it is ignored");
}

TEST_CASE("every key of a feature that is not built is refused, and so is every such choice") {
  for (const Key& key : schema().keys()) {
    if (key.status == Status::unavailable && !key.off.empty())
      CHECK_MESSAGE(says(said_about(key, other_value(key)), true, key.path, key.note + " is not available"), key.path);
    for (const std::string& choice : key.not_built) {
      CHECK_MESSAGE(says(said_about(key, choice), true, key.path, "'" + choice + "' is not available"), key.path);
    }
  }
}

TEST_CASE("every text that is read as another is told of, and replaced") {
  for (const Key& key : schema().keys()) {
    for (const std::string& text : key.synonyms) {
      const std::string words = fmt::format("'{}' means {} here: {}", text, key.synonym_of, key.synonym_note);
      CHECK_MESSAGE(says(said_about(key, text), false, key.path, words), key.path);
      const Files files("a.yaml", kValid);
      const Loaded loaded = load_with_defaults(files / "a.yaml", {"++" + key.path + "=" + text});
      CHECK_MESSAGE(loaded.root.as_string(key.path) == key.synonym_of, key.path);
    }
  }
}

TEST_CASE("every key that nothing reads is told of where it is not the default") {
  for (const Key& key : schema().keys()) {
    if (key.status != Status::accepted || key.note.empty() || !is_leaf(key)) continue;
    CHECK_MESSAGE(says(said_about(key, other_value(key)), false, key.path, key.note), key.path);
    if (key.default_yaml.empty() || key.default_yaml.starts_with("${") || key.open) continue;
    CHECK_MESSAGE(!says(said_about(key, key.default_yaml), false, key.path, key.note), key.path << " at its default");
  }
}

TEST_CASE("a section that nothing reads is told of as a whole") {
  for (const Key& key : leaves(Status::accepted)) {
    if (!key.note.empty()) continue;
    const std::string section = key.path.substr(0, key.path.rfind('.'));
    const std::string& note = schema().find(section)->note;
    REQUIRE_MESSAGE(!note.empty(), key.path);
    const std::string value = key.kinds & kBool ? "true" : other_value(key);  // false asks for nothing
    CHECK_MESSAGE(says(said_about(key, value), false, section, note), key.path);
  }
}

TEST_CASE("every detail of a feature that is not built has a switch that is refused or told of") {
  std::map<std::string, std::string> switches;
  for (const Block& block : account()) {
    if (!block.heading.starts_with(kDetails)) continue;
    for (const std::string& key : block.keys) switches[key] = block.heading.substr(std::string(kDetails).size());
  }
  for (const Key& key : leaves(Status::dormant)) {
    std::string above = key.path;
    while (above.find('.') != std::string::npos && !switches.contains(key.path)) {
      above = above.substr(0, above.rfind('.'));
      const Key* section = schema().find(above);
      if (section && section->status == Status::unavailable) switches[key.path] = above;
    }
    if (!key.detail_of.empty()) switches[key.path] = key.detail_of;
    REQUIRE_MESSAGE(switches.contains(key.path), key.path << ": keys.txt names no switch");
    const Key* found = schema().find(switches[key.path]);
    REQUIRE_MESSAGE(found, key.path << ": " << switches[key.path] << " is no key");
    const bool refused = found->status == Status::unavailable || !found->not_built.empty();
    CHECK_MESSAGE((refused || found->status == Status::accepted), key.path);
  }
}

TEST_CASE("gradients are clipped to megatron_cfg's clip_grad where megatron trains") {
  const auto norm = [](Overrides overrides) {
    const Files files("a.yaml", kValid);
    overrides.push_back("++policy.megatron_cfg.optimizer.clip_grad=0.25");
    return run_config(load_with_defaults(files / "a.yaml", overrides)).policy.max_grad_norm;
  };
  CHECK(norm({"++policy.megatron_cfg.enabled=true", "++policy.dtensor_cfg.enabled=false"}) == 0.25);
  CHECK(norm({}) == 1.0);
}

TEST_CASE("each key of a supervised course is read") {
  for (const std::string algorithm : {"sft", "dpo", "rm"}) {
    const auto course = [&](const Overrides& overrides) {
      const Files files("a.yaml", "policy: {model_name: m}\ndata: {train: {dataset_name: arithmetic}}\n" + algorithm +
                                      ": {seed: 3}\n");
      const SupervisedConfig c = run_config(load_with_defaults(files / "a.yaml", overrides)).supervised;
      return std::vector<int64_t>{
          c.max_num_epochs,       c.max_num_steps, c.val_period, c.val_batches, c.val_global_batch_size,
          c.val_micro_batch_size, c.val_at_start,  c.val_at_end, c.seed,        c.max_nonfinite_steps,
          c.only_unmask_final};
    };
    for (const std::string& path : schema().children(algorithm)) {
      if (!schema().find(path)->plugin.empty()) continue;  // a loss's
      CHECK_MESSAGE(course({"++" + path + "=" + other_value(*schema().find(path))}) != course({}), path);
    }
  }
}

TEST_CASE("each key of asynchronous GRPO is read") {
  const auto read = [](const Overrides& overrides) {
    const Files files("a.yaml", kValid);
    const AsyncGrpoConfig c = run_config(load_with_defaults(files / "a.yaml", overrides)).grpo.async_grpo;
    return std::vector<double>{static_cast<double>(c.enabled),
                               static_cast<double>(c.max_trajectory_age_steps),
                               static_cast<double>(c.max_generation_failures),
                               static_cast<double>(c.in_flight_weight_updates),
                               static_cast<double>(c.recompute_kv_cache_after_weight_updates),
                               c.group_timeout_s};
  };
  for (const std::string& path : schema().children("grpo.async_grpo"))
    CHECK_MESSAGE(read({"++" + path + "=" + other_value(*schema().find(path))}) != read({}), path);
}
