// What is measured: layouts of ranks, each with every form of types and sharding that has a formula; the model of a
// case and how much of it a rank holds.
#pragma once
#include "tests/plugins/megatron/expert_model.hpp"

namespace layout_bytes {

using nlohmann::json;

constexpr int64_t kHidden = 128, kFfn = 352, kHeads = 4, kKeyHeads = 2, kHeadDim = 32, kVocab = 256, kExperts = 4;
constexpr int64_t kTokens = 16, kMicroBatches = 2;  // of a sequence; of a data-parallel rank in a step

struct Layout {
  std::string name;
  int world = 1, tp = 1, cp = 1, pp = 1, ep = 1;
  bool experts = false;
  bool sequence_parallel = true;

  int64_t dp_cp() const { return world / tp / pp; }
  int64_t edp() const { return world / pp / ep; }  // the experts are not cut
  bool tokens_sharded() const { return tp > 1 && sequence_parallel; }
  int64_t row() const { return kTokens / cp; }  // tokens of a micro-batch that a context-parallel rank has
  // Ranks count TP first, then CP, DP and PP.
  int cp_rank(int rank) const { return rank / tp % cp; }
  int stage(int rank) const { return rank / (world / pp); }
};

// Types of parameters and gradients, and what data-parallel ranks share of them.
struct Form {
  std::string name, sharding;
  std::string precision = "bfloat16";
  bool fp32_gradients = true;
  bool precision_aware = false;  // gradients and moments in bf16, masters as remainders

  int64_t parameter() const { return precision == "float32" ? 4 : 2; }
  int64_t gradient() const { return fp32_gradients ? 4 : parameter(); }
  int level() const {  // 0 to 3: how many of optimizer, gradients and parameters are shared
    return sharding == "no_shard" ? 0 : sharding == "optim" ? 1 : sharding == "optim_grads" ? 2 : 3;
  }
};

inline std::vector<Layout> layouts() {
  return {{"DP2", 2},
          {"DP4", 4},
          {"TP2 DP2", 4, 2},
          {"PP2 DP2", 4, 1, 1, 2},
          {"CP2 DP2", 4, 1, 2},
          {"EP2 EDP2 DP4", 4, 1, 1, 1, 2, true},
          {"CP2 EP2", 2, 1, 2, 1, 2, true},
          {"TP2, no SP", 2, 2, 1, 1, 1, false, false},
          {"PP4", 4, 1, 1, 4},
          {"TP2 PP2", 4, 2, 1, 2},
          {"CP4", 4, 1, 4},
          {"EP4", 4, 1, 1, 1, 4, true},
          {"TP2 EP4", 4, 2, 1, 1, 4, true}};
}

inline std::vector<Form> forms() {
  return {{"fp16, no_shard", "no_shard", "float16", false},
          {"fp16, optim", "optim", "float16", false},
          {"bf16, no_shard", "no_shard"},
          {"bf16, optim", "optim"},
          {"fp32, no_shard", "no_shard", "float32"},
          {"fp32, optim", "optim", "float32"},
          {"bf16, optim_grads", "optim_grads"},
          {"bf16, optim_grads_params", "optim_grads_params"},
          {"bf16, precision-aware", "optim", "bfloat16", false, true}};
}

// Every size is a multiple of 128 elements, so that buckets have no padding. All tokens go to all experts: the traffic
// does not depend on what the routers say.
inline json model_of(const Layout& layout, int64_t layers) {
  json model = layout.experts ? backend_test::expert_model("mixtral") : backend_test::megatron_model("llama");
  model.update({{"num_hidden_layers", layers},
                {"hidden_size", kHidden},
                {"intermediate_size", kFfn},
                {"num_attention_heads", kHeads},
                {"num_key_value_heads", kKeyHeads},
                {"head_dim", kHeadDim},
                {"vocab_size", kVocab}});
  if (layout.experts) model.update({{"num_local_experts", kExperts}, {"num_experts_per_tok", kExperts}});
  return model;
}

inline json policy_of(const Layout& layout, const Form& form, const std::filesystem::path& model) {
  json keys = {{"tensor_model_parallel_size", layout.tp},
               {"pipeline_model_parallel_size", layout.pp},
               {"context_parallel_size", layout.cp},
               {"expert_model_parallel_size", layout.ep},
               {"expert_tensor_parallel_size", 1},
               {"sequence_parallel", layout.tokens_sharded()},
               {"distributed_data_parallel_config",
                {{"data_parallel_sharding_strategy", form.sharding}, {"grad_reduce_in_fp32", form.fp32_gradients}}},
               {"optimizer", {{"lr", 1e-3}}}};
  if (form.precision_aware)
    keys["optimizer"].update({{"use_precision_aware_optimizer", true},
                              {"main_grads_dtype", "bfloat16"},
                              {"exp_avg_dtype", "bfloat16"},
                              {"exp_avg_sq_dtype", "bfloat16"}});
  json policy = backend_test::megatron_policy(model, keys, form.precision);
  policy["random_init_seed"] = 7;
  return policy;
}

// Parameters that a rank holds, from the model's sizes.
struct Parameters {
  int64_t dense = 0, expert = 0;
  int64_t layer = 0;  // of one layer, experts included: what is gathered at once

  int64_t all() const { return dense + expert; }
};

inline Parameters parameters_of(const Layout& layout, int64_t layers, int rank) {
  const int64_t attention = 2 * kHidden * kHeadDim * (kHeads + kKeyHeads) / layout.tp, norms = 2 * kHidden,
                mlp = 3 * kHidden * kFfn, vocabulary = kVocab * kHidden / layout.tp, here = layers / layout.pp;
  const int64_t dense = attention + norms + (layout.experts ? kExperts * kHidden : mlp / layout.tp),
                expert = layout.experts ? kExperts / layout.ep * mlp : 0;
  const bool first = layout.stage(rank) == 0, last = layout.stage(rank) == layout.pp - 1;
  return {here * dense + (first ? vocabulary : 0) + (last ? vocabulary + kHidden : 0), here * expert, dense + expert};
}

}  // namespace layout_bytes
