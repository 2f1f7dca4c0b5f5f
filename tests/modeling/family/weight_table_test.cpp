#include "modeling/family/weight_table.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <set>

namespace hexad::modeling {
namespace {

ModelConfig config_of(const std::string& family, bool tied) {
  return parse_model_config({{"model_type", family},
                             {"vocab_size", 100},
                             {"hidden_size", 64},
                             {"num_hidden_layers", 2},
                             {"num_attention_heads", 8},
                             {"num_key_value_heads", 2},
                             {"head_dim", 16},
                             {"intermediate_size", 96},
                             {"tie_word_embeddings", tied}},
                            "config.json");
}

const WeightInfo& find(const std::vector<WeightInfo>& table, const std::string& name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const WeightInfo& info) { return info.hf_name == name; });
  REQUIRE_MESSAGE(found != table.end(), name);
  return *found;
}

TEST_CASE("the table lists every weight once, by units in forward order") {
  const ModelConfig config = config_of("qwen3", false);
  const std::vector<WeightInfo> table = weight_table(config);
  CHECK(table.size() == 1 + 2 * 11 + 2);
  std::vector<std::string> units;
  std::set<std::string> names;
  for (const WeightInfo& info : table) {
    if (units.empty() || units.back() != info.unit) units.push_back(info.unit);
    CHECK(names.insert(info.hf_name).second);
  }
  CHECK(units == weight_units(config));
  CHECK(units == std::vector<std::string>{"embed", "layers.0", "layers.1", "head"});
  CHECK(find(table, "model.layers.1.self_attn.q_proj.weight").shape == std::vector<int64_t>{128, 64});
  CHECK(find(table, "model.layers.1.self_attn.o_proj.weight").shape == std::vector<int64_t>{64, 128});
  CHECK(find(table, "model.layers.0.self_attn.k_norm.weight").shape == std::vector<int64_t>{16});
  CHECK(find(table, "lm_head.weight").unit == "head");
}

TEST_CASE("a tied head is the embedding") {
  const ModelConfig config = config_of("qwen2", true);
  const std::vector<WeightInfo> table = weight_table(config);
  CHECK(table.back().hf_name == kFinalNormName);
  CHECK(std::string(head_weight_name(config)) == kEmbeddingName);
  CHECK(find(table, "model.layers.0.self_attn.v_proj.bias").shape == std::vector<int64_t>{32});
}

TEST_CASE("initial weights: norms 1, biases 0, matrices by the seed") {
  const ModelConfig config = config_of("qwen2", false);
  const std::vector<WeightInfo> table = weight_table(config);
  const auto make = [&](const char* name, uint64_t seed) {
    return initial_weight(config, find(table, name), at::detail::createCPUGenerator(seed));
  };
  CHECK(make("model.norm.weight", 1).equal(at::ones({64})));
  CHECK(make("model.layers.0.self_attn.q_proj.bias", 1).equal(at::zeros({128})));
  const at::Tensor head = make("lm_head.weight", 1);
  CHECK(head.std().item<double>() == doctest::Approx(0.02).epsilon(0.05));
  CHECK(head.equal(make("lm_head.weight", 1)));
  CHECK_FALSE(head.equal(make("lm_head.weight", 2)));
}

}  // namespace
}  // namespace hexad::modeling
