#include "lib/model/model_shape.hpp"

#include <doctest/doctest.h>

using namespace hexad::model;
using Json = nlohmann::ordered_json;

TEST_CASE("a dense model: heads, layers, widths, no experts") {
  const ModelShape shape = model_shape(
      {{"num_attention_heads", 8}, {"num_hidden_layers", 4}, {"intermediate_size", 64}, {"mlp_bias", true}});
  CHECK(shape.num_attention_heads == 8);
  CHECK(shape.num_key_value_heads == 8);  // as many where the file does not say
  CHECK(shape.num_layers == 4);
  CHECK(shape.intermediate_size == 64);
  CHECK(shape.linear_bias);
  CHECK_FALSE(shape.num_experts.has_value());
  CHECK_FALSE(shape.score_function.has_value());
  CHECK_FALSE(model_shape({{"num_experts", 0}}).num_experts.has_value());
}

TEST_CASE("a model with experts, under each family's names") {
  for (const char* name : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    INFO(name);
    const ModelShape shape = model_shape({{name, 16}, {"num_experts_per_tok", 2}, {"intermediate_size", 32}});
    CHECK(shape.num_experts == 16);
    CHECK(shape.experts_per_token == 2);
    CHECK(shape.moe_intermediate_size == 32);
    CHECK(shape.score_function == "softmax");
    CHECK_FALSE(shape.shared_experts);
  }
  const ModelShape deepseek = model_shape({{"model_type", "deepseek_v3"},
                                           {"n_routed_experts", 8},
                                           {"n_group", 4},
                                           {"topk_group", 2},
                                           {"n_shared_experts", 1},
                                           {"kv_lora_rank", 16},
                                           {"num_key_value_heads", 4}});
  CHECK(deepseek.score_function == "sigmoid");
  CHECK(deepseek.expert_groups == 4);
  CHECK(deepseek.groups_per_token == 2);
  CHECK(deepseek.shared_experts);
  CHECK(deepseek.latent_attention);
  CHECK_FALSE(deepseek.num_key_value_heads.has_value());
}

TEST_CASE("values of the wrong kind count as absent") {
  const ModelShape shape = model_shape({{"num_attention_heads", "8"}, {"num_hidden_layers", 1.5}, {"mlp_bias", 1}});
  CHECK_FALSE(shape.num_attention_heads.has_value());
  CHECK_FALSE(shape.num_layers.has_value());
  CHECK_FALSE(shape.linear_bias);
}
