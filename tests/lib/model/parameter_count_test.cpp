#include "lib/model/parameter_count.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "lib/tensorfile/safetensors.hpp"
#include "tests/support/golden.hpp"

using namespace hexad::model;
using Json = nlohmann::ordered_json;

namespace {

Json with(Json base, const Json& more) {
  base.update(more);
  return base;
}

const Json kLlama = {{"model_type", "llama"},  {"vocab_size", 10},         {"hidden_size", 8},
                     {"num_hidden_layers", 3}, {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                     {"intermediate_size", 16}};

ParameterCount count_of(const Json& config) {
  const std::optional<ParameterCount> count = parameter_count(config);
  REQUIRE_MESSAGE(count, config.dump());
  return *count;
}

// Elements of a file's tensors, by name.
std::map<std::string, int64_t> elements_in(const std::filesystem::path& file) {
  std::map<std::string, int64_t> elements;
  const hexad::tensorfile::Safetensors stored = hexad::tensorfile::Safetensors::open(file);
  for (const hexad::tensorfile::SafetensorsEntry& entry : stored.tensors())
    elements[entry.name] = static_cast<int64_t>(entry.elements());
  return elements;
}

int64_t sum_of(const std::map<std::string, int64_t>& elements, const std::function<bool(const std::string&)>& wanted) {
  int64_t sum = 0;
  for (const auto& [name, count] : elements)
    if (wanted(name)) sum += count;
  return sum;
}

void check_model(const std::filesystem::path& folder) {
  const ParameterCount count = count_of(Json::parse(std::ifstream(folder / "config.json")));
  const std::map<std::string, int64_t> elements = elements_in(folder / "model.safetensors");
  const auto ends = [&](const char* end) {
    return sum_of(elements, [&](const std::string& name) { return name.ends_with(end); });
  };
  const auto holds = [&](const char* part) {
    return sum_of(elements, [&](const std::string& name) { return name.find(part) != name.npos; });
  };
  CHECK(count.total() == holds(""));
  CHECK(count.embedding == holds("embed_tokens."));
  CHECK(count.head == holds("lm_head."));
  CHECK(count.all_experts() == holds(".experts."));
  CHECK(count.router * count.expert_layers == ends(".gate.weight"));
  CHECK(count.expert_bias * count.expert_layers == ends("e_score_correction_bias"));
  CHECK(count.norms * count.layers + count.final_norm == ends("norm.weight"));
  CHECK(count.attention * count.layers + ends("_norm.weight") + ends("q_a_layernorm.weight") +
            ends("kv_a_layernorm.weight") ==
        holds("self_attn."));
  CHECK(count.key_value * count.layers == holds(".k_proj.") + holds(".v_proj."));
  CHECK(count.latent * count.layers == holds("q_a_proj.") + holds("kv_a_proj_with_mqa."));
  CHECK(count.output_bias * count.layers == ends("o_proj.bias"));
  CHECK((count.shared + count.shared_gate) * count.expert_layers == holds(".shared_expert"));
}

}  // namespace

TEST_CASE("parameters of a dense model, by role") {
  // Heads of 2: queries 8 x 8, keys and values 4 x 8 each, output 8 x 8; gate, up, down 16 x 8 each.
  const ParameterCount count = count_of(kLlama);
  CHECK(count.embedding == 80);
  CHECK(count.head == 80);
  CHECK(count.attention == 64 + 32 + 32 + 64);
  CHECK(count.key_value == 64);
  CHECK(count.dense_mlp == 3 * 128);
  CHECK(count.norms == 16);
  CHECK(count.total() == 80 + 80 + 8 + 3 * (192 + 384 + 16));
  CHECK(count.uncut() == 8 + 3 * 16);
  CHECK((count.expert_layers == 0 && count.all_experts() == 0 && count.first_expert_layer == 3));

  const ParameterCount tied = count_of(with(kLlama, {{"tie_word_embeddings", true}}));
  CHECK(tied.total() == count.total() - 80);
  const ParameterCount biased = count_of(with(kLlama, {{"attention_bias", true}, {"mlp_bias", true}, {"head_dim", 3}}));
  CHECK(biased.attention == (12 + 6 + 6) * 9 + 12 * 8 + 8);
  CHECK(biased.dense_mlp == 3 * 128 + 16 + 16 + 8);
  CHECK(biased.uncut() == 8 + 3 * (16 + 8 + 8));
  // Qwen3: norms of a head of queries and of keys, 128 where the file does not say; no bias of MLPs.
  const ParameterCount qwen = count_of(with(kLlama, {{"model_type", "qwen3"}, {"mlp_bias", true}}));
  CHECK(qwen.norms == 16 + 2 * 128);
  CHECK(qwen.attention == 2 * 4 * 128 * 8 + 2 * 2 * 128 * 8);
  CHECK(qwen.dense_mlp == 3 * 128);
}

TEST_CASE("parameters of a model with experts, by role") {
  const Json mixtral = with(kLlama, {{"model_type", "mixtral"}, {"num_local_experts", 4}});
  const ParameterCount all = count_of(mixtral);
  CHECK(all.expert == 384);
  CHECK(all.router == 32);
  CHECK(all.all_experts() == 3 * 4 * 384);
  CHECK(all.total() == 168 + 3 * (192 + 16 + 32 + 4 * 384));

  const Json qwen = with(kLlama, {{"model_type", "qwen2_moe"},
                                  {"num_experts", 4},
                                  {"moe_intermediate_size", 2},
                                  {"shared_expert_intermediate_size", 5},
                                  {"decoder_sparse_step", 2}});
  const ParameterCount some = count_of(qwen);
  CHECK((some.expert_layers == 1 && some.first_expert_layer == 1));
  CHECK(some.attention == 192 + 8 + 4 + 4);
  CHECK(some.total() == 168 + 3 * (208 + 16) + 2 * 384 + (32 + 4 * 48 + 120 + 8));
  CHECK(count_of(with(qwen, {{"mlp_only_layers", {1}}})).expert_layers == 0);

  // Latents of 3 and 2, heads of 4 + 2 and values of 5.
  const Json deepseek = with(kLlama, {{"model_type", "deepseek_v3"},
                                      {"q_lora_rank", 3},
                                      {"kv_lora_rank", 2},
                                      {"qk_nope_head_dim", 4},
                                      {"qk_rope_head_dim", 2},
                                      {"v_head_dim", 5},
                                      {"n_routed_experts", 4},
                                      {"moe_intermediate_size", 2},
                                      {"n_shared_experts", 2},
                                      {"first_k_dense_replace", 1}});
  const ParameterCount latent = count_of(deepseek);
  CHECK(latent.latent == (3 + 2 + 2) * 8);
  CHECK(latent.attention == 56 + 24 * 3 + 4 * 9 * 2 + 20 * 8);
  CHECK(latent.norms == 16 + 3 + 2);
  CHECK(latent.key_value == 0);
  CHECK((latent.expert_layers == 2 && latent.first_expert_layer == 1));
  CHECK(latent.total() == 168 + 3 * (360 + 21) + 384 + 2 * (32 + 4 + 4 * 48 + 96));
  CHECK(count_of(with(deepseek, {{"q_lora_rank", nullptr}})).attention == 32 + 24 * 8 + 72 + 160);
}

TEST_CASE("a count is nothing where config.json does not say enough") {
  CHECK_FALSE(parameter_count(Json::array()));
  CHECK_FALSE(parameter_count(with(kLlama, {{"model_type", "gemma3_text"}})));
  CHECK_FALSE(parameter_count(with(kLlama, {{"hidden_size", "8"}})));
  CHECK_FALSE(parameter_count(with(kLlama, {{"hidden_size", 0}})));
  CHECK_FALSE(parameter_count(with(kLlama, {{"vocab_size", int64_t{1} << 60}})));
  CHECK_FALSE(parameter_count(with(kLlama, {{"tie_word_embeddings", 1}})));
  CHECK_FALSE(parameter_count(with(kLlama, {{"model_type", "mixtral"}, {"num_local_experts", -1}})));
  CHECK_FALSE(parameter_count(with(kLlama, {{"model_type", "qwen3_moe"}, {"mlp_only_layers", {"first"}}})));
  CHECK_FALSE(parameter_count(
      with(kLlama, {{"hidden_size", 1'000'000}, {"intermediate_size", 1'000'000}, {"num_hidden_layers", 1'000'000}})));
  for (const char* key :
       {"model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"}) {
    INFO(key);
    Json without = kLlama;
    without.erase(key);
    CHECK_FALSE(parameter_count(without));
  }
}

TEST_SUITE("golden") {
  TEST_CASE("parameters by role are the elements of the golden models' weights") {
    const std::set<std::string> families = {"llama",     "mistral",   "qwen2",   "qwen3",
                                            "qwen2_moe", "qwen3_moe", "mixtral", "deepseek_v3"};
    std::vector<std::string> uncounted;
    for (const std::filesystem::path& folder : golden::models()) {
      const std::string name = "models/" + folder.filename().string();
      INFO(name);
      const Json config = Json::parse(std::ifstream(folder / "config.json"));
      if (!families.contains(config.at("model_type").get<std::string>()) && !parameter_count(config)) {
        uncounted.push_back(name);
        continue;
      }
      check_model(folder);
      golden::count(name, 1);
    }
    golden::skip(uncounted, "the parameters of the family are not counted (lib/model/parameter_count.cpp)");
  }
}
