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

std::vector<std::string> names_in(const ModelConfig& config, const std::string& unit) {
  std::vector<std::string> names;
  const std::string prefix = "model." + unit + ".";
  for (const WeightInfo& info : weight_table(config))
    if (info.unit == unit) names.push_back(info.hf_name.substr(prefix.size()));
  return names;
}

TEST_CASE("experts have their published names, and dense layers stay dense") {
  const nlohmann::json base = {{"vocab_size", 100},        {"hidden_size", 64},          {"num_hidden_layers", 2},
                               {"num_attention_heads", 8}, {"num_key_value_heads", 2},   {"intermediate_size", 96},
                               {"num_experts_per_tok", 1}, {"moe_intermediate_size", 24}};
  const auto parse = [&](const nlohmann::json& changes) {
    nlohmann::json config = base;
    config.update(changes);
    return parse_model_config(config, "config.json");
  };
  const auto contains = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const ModelConfig mixtral = parse({{"model_type", "mixtral"}, {"num_local_experts", 3}});
  CHECK(find(weight_table(mixtral), "model.layers.1.block_sparse_moe.experts.2.w3.weight").shape ==
        std::vector<int64_t>{96, 64});
  CHECK(find(weight_table(mixtral), "model.layers.1.block_sparse_moe.experts.2.w2.weight").shape ==
        std::vector<int64_t>{64, 96});

  const ModelConfig qwen3 =
      parse({{"model_type", "qwen3_moe"}, {"num_experts", 3}, {"mlp_only_layers", {0}}, {"decoder_sparse_step", 1}});
  CHECK(contains(names_in(qwen3, "layers.0"), "mlp.up_proj.weight"));
  CHECK(contains(names_in(qwen3, "layers.1"), "mlp.experts.2.up_proj.weight"));
  CHECK_FALSE(contains(names_in(qwen3, "layers.1"), "mlp.up_proj.weight"));

  const ModelConfig qwen2 = parse({{"model_type", "qwen2_moe"}, {"num_experts", 3}, {"decoder_sparse_step", 2}});
  CHECK_FALSE(qwen2.has_experts(0));
  CHECK(find(weight_table(qwen2), "model.layers.1.mlp.shared_expert.gate_proj.weight").shape ==
        std::vector<int64_t>{5632, 64});
  CHECK(contains(names_in(qwen2, "layers.1"), "mlp.shared_expert_gate.weight"));
  CHECK(contains(names_in(qwen2, "layers.1"), "self_attn.q_proj.bias"));

  const ModelConfig deepseek = parse({{"model_type", "deepseek_v3"},
                                      {"n_routed_experts", 4},
                                      {"n_group", 2},
                                      {"topk_group", 1},
                                      {"n_shared_experts", 2},
                                      {"first_k_dense_replace", 1},
                                      {"kv_lora_rank", 16},
                                      {"qk_rope_head_dim", 4}});
  CHECK(contains(names_in(deepseek, "layers.0"), "mlp.down_proj.weight"));
  CHECK(find(weight_table(deepseek), "model.layers.1.mlp.shared_experts.up_proj.weight").shape ==
        std::vector<int64_t>{48, 64});
  CHECK(find(weight_table(deepseek), "model.layers.1.self_attn.kv_a_proj_with_mqa.weight").shape ==
        std::vector<int64_t>{20, 64});
  const std::vector<WeightInfo> table = weight_table(deepseek);
  const WeightInfo& bias = find(table, "model.layers.1.mlp.gate.e_score_correction_bias");
  CHECK_FALSE(bias.trainable);
  CHECK(initial_weight(deepseek, bias, at::detail::createCPUGenerator(1)).equal(at::zeros({4})));
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
