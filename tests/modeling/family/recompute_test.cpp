// Blocks whose parts run again in the backward pass: same results, less memory.
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "modeling/family/batch_attention.hpp"
#include "modeling/family/transformer.hpp"
#include "modeling/family/weight_table.hpp"
#include "tests/modeling/support/allocated_bytes.hpp"
#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

nlohmann::json family_config(const std::string& family) {
  nlohmann::json config = {{"model_type", family},           {"vocab_size", 40},         {"hidden_size", 32},
                           {"num_hidden_layers", 2},         {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                           {"intermediate_size", 48},        {"rms_norm_eps", 1e-6},     {"hidden_act", "silu"},
                           {"max_position_embeddings", 256}, {"rope_theta", 10000.0},    {"head_dim", 8}};
  if (family == "qwen2_moe")
    config.update({{"num_experts", 4},
                   {"num_experts_per_tok", 2},
                   {"moe_intermediate_size", 24},
                   {"shared_expert_intermediate_size", 40},
                   {"norm_topk_prob", true}});
  if (family == "deepseek_v3")
    config.update({{"n_routed_experts", 4},
                   {"num_experts_per_tok", 2},
                   {"moe_intermediate_size", 24},
                   {"n_group", 2},
                   {"topk_group", 1},
                   {"n_shared_experts", 1},
                   {"first_k_dense_replace", 1},
                   {"q_lora_rank", 8},
                   {"kv_lora_rank", 8},
                   {"qk_nope_head_dim", 12},
                   {"qk_rope_head_dim", 4},
                   {"v_head_dim", 12}});
  return config;
}

struct Model {
  ModelConfig config;
  std::map<std::string, at::Tensor> weights;
  std::vector<at::Tensor> learning = {};
  PackedLayout layout;
  Rope rope;
  at::Tensor hidden, grad;

  explicit Model(const std::string& family)
      : config(parse_model_config(family_config(family), "test")),
        layout(packed_layout(at::tensor({int64_t{0}, int64_t{50}, int64_t{96}}, at::kLong), at::kCPU)),
        rope(make_rope(config.rope, config.head_dim, layout.positions)),
        hidden(at::randn({96, 32}).set_requires_grad(true)),
        grad(at::randn({96, 32})) {
    for (const WeightInfo& info : weight_table(config)) {
      if (!info.unit.starts_with("layers.")) continue;
      at::Tensor& weight = weights[info.hf_name] = at::randn(info.shape) * 0.2;
      if (info.trainable) learning.push_back(weight.set_requires_grad(true));
    }
  }

  at::Tensor forward(const Recompute& recompute, Attention& attention) const {
    BlockOptions options;
    options.recompute = recompute;
    at::Tensor h = hidden;
    for (int64_t layer = 0; layer < config.num_layers; ++layer) {
      const auto lookup = [&](const std::string& name) { return weights.at(name); };
      h = block_forward(config, layer, layer_weights(config, layer, lookup), h, rope, attention, options);
    }
    return h;
  }

  struct Result {
    at::Tensor out;
    std::vector<at::Tensor> grads;
    int64_t held, peak;  // bytes after the forward pass, and at most
  };
  Result run(const Recompute& recompute) const {
    const AllocatedBytes bytes;
    PackedAttention attention(config, layout);
    Result result;
    result.out = forward(recompute, attention);
    result.held = bytes.now();
    std::vector<at::Tensor> inputs = {hidden};
    inputs.insert(inputs.end(), learning.begin(), learning.end());
    result.grads = torch::autograd::grad({result.out}, inputs, {grad}, false, false, /*allow_unused=*/true);
    result.peak = bytes.peak();
    return result;
  }
};

struct Module {
  const char* name;
  bool Recompute::*on;
  std::vector<std::string> families;  // those with such a part
};

const std::vector<Module>& modules() {
  static const std::vector<Module> all = {
      {"core_attn", &Recompute::core_attention, {"llama", "qwen2_moe", "deepseek_v3"}},
      {"mlp", &Recompute::mlp, {"llama", "deepseek_v3"}},
      {"moe", &Recompute::moe, {"qwen2_moe", "deepseek_v3"}},
      {"layernorm", &Recompute::norms, {"llama", "qwen2_moe", "deepseek_v3"}},
      {"moe_act", &Recompute::expert_activation, {"qwen2_moe", "deepseek_v3"}},
      {"mla_up_proj", &Recompute::latent_up, {"deepseek_v3"}},
      {"shared_experts", &Recompute::shared_experts, {"qwen2_moe", "deepseek_v3"}}};
  return all;
}

void same(const Model::Result& got, const Model::Result& want) {
  CHECK(at::equal(got.out, want.out));
  REQUIRE(got.grads.size() == want.grads.size());
  for (size_t i = 0; i < want.grads.size(); ++i) {
    REQUIRE(got.grads[i].defined() == want.grads[i].defined());
    if (want.grads[i].defined()) CHECK(at::equal(got.grads[i], want.grads[i]));
  }
}

}  // namespace

TEST_CASE("each recomputed module frees memory where the family has it, and changes no bit of a gradient") {
  for (const char* family : {"llama", "qwen2_moe", "deepseek_v3"}) {
    const Model model(family);
    const Model::Result plain = model.run({});
    for (const Module& module : modules()) {
      Recompute recompute;
      recompute.*module.on = true;
      const Model::Result result = model.run(recompute);
      INFO(std::string(family) << ", " << std::string(module.name) << ": " << plain.held << " -> " << result.held
                               << " bytes held");
      same(result, plain);
      const bool has = std::ranges::count(module.families, family) > 0;
      if (has) {
        CHECK(result.held < plain.held);
      } else {
        CHECK(result.held == plain.held);
      }
    }
  }
}

TEST_CASE("all modules together change no bit, and hold less than each alone") {
  for (const char* family : {"llama", "qwen2_moe", "deepseek_v3"}) {
    INFO(std::string(family));
    const Model model(family);
    const Model::Result plain = model.run({});
    Recompute all;
    int64_t least = plain.held;
    for (const Module& module : modules()) {
      all.*module.on = true;
      Recompute one;
      one.*module.on = true;
      least = std::min(least, model.run(one).held);
    }
    const Model::Result result = model.run(all);
    same(result, plain);
    CHECK(result.held < least);
  }
}

}  // namespace hexad::modeling
