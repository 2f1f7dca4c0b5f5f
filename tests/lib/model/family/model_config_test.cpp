#include "lib/model/family/model_config.hpp"

#include <cmath>

#include <doctest/doctest.h>

#include "lib/model/error.hpp"

namespace hexad::model {
namespace {

using nlohmann::json;
using Windows = std::vector<int64_t>;

json minimal(const std::string& family) {
  return {{"model_type", family},     {"vocab_size", 100},       {"hidden_size", 64},   {"num_hidden_layers", 4},
          {"num_attention_heads", 8}, {"intermediate_size", 96}, {"hidden_act", "silu"}};
}

json with(json base, const json& changes) {
  base.update(changes);
  return base;
}

ModelConfig parse(const json& config) { return parse_model_config(config, "config.json"); }

TEST_CASE("defaults are those of transformers' configuration classes") {
  const ModelConfig llama = parse(minimal("llama"));
  CHECK(llama.num_kv_heads == 8);
  CHECK(llama.head_dim == 8);
  CHECK(llama.rms_norm_eps == 1e-6);
  CHECK(llama.rope.theta == 10000.0);
  CHECK(llama.max_position_embeddings == 2048);
  CHECK_FALSE(llama.tie_word_embeddings);
  CHECK_FALSE(llama.qkv_bias);
  CHECK(llama.bos_token_id == 1);
  CHECK(llama.eos_token_ids == Windows{2});
  CHECK(parse(minimal("mistral")).sliding_window == Windows(4, 4096));
  const ModelConfig qwen2 = parse(with(minimal("qwen2"), {{"num_key_value_heads", 2}}));
  CHECK(qwen2.qkv_bias);
  CHECK_FALSE(qwen2.output_bias);
  CHECK(qwen2.eos_token_ids.empty());
  const ModelConfig qwen3 = parse(with(minimal("qwen3"), {{"num_key_value_heads", 2}}));
  CHECK(qwen3.head_dim == 128);
  CHECK(qwen3.qk_norm);
  CHECK_FALSE(qwen3.qkv_bias);
}

TEST_CASE("null counts as absent") {
  const json nulls = {{"head_dim", nullptr},
                      {"num_key_value_heads", nullptr},
                      {"rope_scaling", nullptr},
                      {"eos_token_id", nullptr},
                      {"bos_token_id", nullptr}};
  const ModelConfig config = parse(with(minimal("mistral"), with(nulls, {{"sliding_window", nullptr}})));
  CHECK(config.head_dim == 8);
  CHECK(config.num_kv_heads == 8);
  CHECK(config.sliding_window == Windows(4, 0));
  CHECK(config.eos_token_ids.empty());
  CHECK_FALSE(config.bos_token_id.has_value());
}

TEST_CASE("both styles of config.json give the same rope and dtype") {
  const json scaling = {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32}, {"beta_fast", 16}};
  const ModelConfig published =
      parse(with(minimal("llama"), {{"rope_theta", 5e5}, {"rope_scaling", scaling}, {"torch_dtype", "bfloat16"}}));
  const json parameters = with(scaling, {{"rope_type", "yarn"}, {"rope_theta", 5e5}});
  const ModelConfig recent = parse(with(minimal("llama"), {{"rope_parameters", parameters}, {"dtype", "bfloat16"}}));
  for (const ModelConfig& config : {published, recent}) {
    CHECK(config.rope.theta == 5e5);
    CHECK(config.rope.scaling == RopeScaling::yarn);
    CHECK(config.rope.factor == 4.0);
    CHECK(config.rope.original_max_position_embeddings == 32);
    CHECK(config.rope.beta_fast == 16.0);
    CHECK(config.dtype == "bfloat16");
  }
}

TEST_CASE("qwen2 slides from max_window_layers, or where layer_types says") {
  json base = with(minimal("qwen2"), {{"num_key_value_heads", 2}, {"sliding_window", 16}, {"max_window_layers", 3}});
  CHECK(parse(base).sliding_window == Windows(4, 0));
  base["use_sliding_window"] = true;
  CHECK(parse(base).sliding_window == Windows{0, 0, 0, 16});
  base["layer_types"] = {"sliding_attention", "full_attention", "full_attention", "sliding_attention"};
  CHECK(parse(base).sliding_window == Windows{16, 0, 0, 16});
}

TEST_CASE("experts: defaults, layers and routing of each family") {
  const ModelConfig qwen3 = parse(with(minimal("qwen3_moe"), {{"num_key_value_heads", 2}, {"norm_topk_prob", true}}));
  CHECK(qwen3.moe->num_experts == 128);
  CHECK(qwen3.moe->intermediate_size == 768);
  CHECK(qwen3.moe->routing.topk == 8);
  CHECK_FALSE(qwen3.moe->routing.pre_softmax);
  CHECK(qwen3.qk_norm);
  CHECK(qwen3.sliding_window == Windows(4, 0));
  const ModelConfig qwen2 = parse(with(minimal("qwen2_moe"), {{"num_key_value_heads", 2},
                                                              {"use_sliding_window", true},
                                                              {"sliding_window", 9},
                                                              {"max_window_layers", 3},
                                                              {"decoder_sparse_step", 2},
                                                              {"mlp_only_layers", {3}}}));
  CHECK(qwen2.moe->routing.pre_softmax);
  CHECK(qwen2.moe->layers == std::vector<bool>{false, true, false, false});
  CHECK(qwen2.sliding_window == Windows{9, 0, 9, 0});
  CHECK(qwen2.qkv_bias);
  const ModelConfig mixtral = parse(minimal("mixtral"));
  CHECK(mixtral.moe->intermediate_size == 96);
  CHECK(mixtral.rope.theta == 1e6);
  CHECK(mixtral.rms_norm_eps == 1e-5);
  CHECK(mixtral.sliding_window == Windows(4, 0));
}

TEST_CASE("deepseek_v3: latents, yarn's scale of the logits, sigmoid routing in groups") {
  const json yarn = {{"type", "yarn"},
                     {"factor", 40.0},
                     {"original_max_position_embeddings", 4096},
                     {"mscale", 1.0},
                     {"mscale_all_dim", 1.0}};
  const ModelConfig config = parse(with(minimal("deepseek_v3"), {{"rope_scaling", yarn}, {"qk_rope_head_dim", 16}}));
  CHECK(config.mla->q_lora_rank == 1536);
  CHECK(config.mla->kv_lora_rank == 512);
  CHECK(config.mla->qk_head_dim() == 128 + 16);
  CHECK(config.head_dim == 16);
  CHECK(config.num_kv_heads == 8);
  const double mscale = 0.1 * std::log(40.0) + 1;
  CHECK(config.mla->logit_scale == doctest::Approx(mscale * mscale));
  CHECK(config.moe->layers == std::vector<bool>{false, false, false, true});
  CHECK(bool(config.moe->routing.score == ScoreFunction::sigmoid));
  CHECK(config.moe->routing.scaling_factor == 2.5);
  CHECK(config.moe->routing.group_score_experts == 2);
  CHECK(config.moe->shared_intermediate_size == 2048);
  CHECK(parse(with(minimal("deepseek_v3"), {{"q_lora_rank", nullptr}})).mla->q_lora_rank == 0);
  CHECK(parse(minimal("deepseek_v3")).mla->logit_scale == 1.0);
}

TEST_CASE("errors say where, what and what is known") {
  const auto check = [](const json& config, const char* message) {
    CHECK_THROWS_WITH_AS(parse(config), message, Error);
  };
  check(minimal("gpt2"),
        "config.json: model_type 'gpt2' is not supported; known families: llama, mistral, qwen2, qwen3, "
        "qwen2_moe, qwen3_moe, mixtral, deepseek_v3");
  check(json::object(), "config.json: 'model_type' is missing");
  check(
      {{"model_type", "qwen2_5_vl"}, {"text_config", minimal("qwen2")}},
      "config.json: 'qwen2_5_vl' is a model of more than text: its language model (qwen2) stands in 'text_config' of "
      "the config. Such models are not available. Nearest: the text model of the same family, in a folder of its own");
  check(json::array(), "config.json: expected a JSON object, got array");
  json no_layers = minimal("llama");
  no_layers.erase("num_hidden_layers");
  check(no_layers, "config.json: 'num_hidden_layers' is missing");
  check(with(minimal("llama"), {{"vocab_size", "many"}}), "config.json: 'vocab_size' is \"many\", wanted an integer");
  check(with(minimal("llama"), {{"vocab_size", 0}}), "config.json: 'vocab_size' is 0, wanted a positive integer");
  check(with(minimal("llama"), {{"vocab_size", int64_t{1} << 62}}),
        "config.json: 'vocab_size' is 4611686018427387904, wanted at most 16777216: no model has more");
  check(with(minimal("llama"), {{"num_hidden_layers", 1'000'000'000}}),
        "config.json: 'num_hidden_layers' is 1000000000, wanted at most 16384: no model has more");
  check(with(minimal("llama"), {{"num_hidden_layers", 2.5}}),
        "config.json: 'num_hidden_layers' is 2.5, wanted an integer");
  check(with(minimal("llama"), {{"hidden_size", {64}}}), "config.json: 'hidden_size' is [64], wanted an integer");
  check(with(minimal("llama"), {{"rms_norm_eps", "small"}}),
        "config.json: 'rms_norm_eps' is \"small\", wanted a number");
  check(with(minimal("llama"), {{"tie_word_embeddings", "yes"}}),
        "config.json: 'tie_word_embeddings' is \"yes\", wanted true or false");
  check(with(minimal("llama"), {{"rope_scaling", "yarn"}}),
        "config.json: rope_scaling: expected a JSON object, got string");
  check(with(minimal("llama"), {{"rope_parameters", {{"rope_type", "linear"}, {"factor", "two"}}}}),
        "config.json: rope_parameters: 'factor' is \"two\", wanted a number");
  check(with(minimal("llama"), {{"rope_theta", -1}}), "config.json: rope_theta is -1, wanted a positive number");
  check(with(minimal("llama"), {{"hidden_act", "gelu"}}),
        "config.json: hidden_act 'gelu' is not supported; wanted silu");
  check(with(minimal("llama"), {{"num_key_value_heads", 3}}),
        "config.json: num_attention_heads 8 is not a multiple of num_key_value_heads 3");
  check(with(minimal("llama"), {{"head_dim", 7}}), "config.json: head_dim is 7, wanted an even number");
  check(with(minimal("llama"), {{"rope_scaling", {{"type", "longrope"}}}}),
        "config.json: rope_scaling: rope type 'longrope' is not supported; known types: default, linear, llama3, yarn");
  check(with(minimal("llama"), {{"rope_scaling", {{"type", "linear"}}}}),
        "config.json: rope_scaling: 'factor' is missing");
  check(with(minimal("deepseek_v3"), {{"scoring_func", "softmax"}}),
        "config.json: 'scoring_func' is \"softmax\", wanted \"sigmoid\"");
  check(with(minimal("qwen3_moe"), {{"num_experts_per_tok", 200}, {"num_key_value_heads", 2}}),
        "config.json: router: topk is 200, wanted 1 ... 128 (experts)");
  check(with(minimal("qwen2_moe"), {{"mlp_only_layers", 1}, {"num_key_value_heads", 2}}),
        "config.json: 'mlp_only_layers' is 1, wanted a list of layers");
  check(with(minimal("llama"), {{"eos_token_id", "x"}}),
        "config.json: 'eos_token_id' is \"x\", wanted a token id or a list of them");
}

}  // namespace
}  // namespace hexad::model
