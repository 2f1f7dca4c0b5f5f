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
  int world = 1, tp = 1, cp = 1, pp = 1, ep = 1, etp = 1;
  bool experts = false;
  bool every_form = false;  // else "bf16, optim" alone
  bool sequence_parallel = true;
  std::string exchange = "p2p";         // of context-parallel ranks
  std::string dispatcher = "alltoall";  // of tokens
  int virtual_pipeline = 1;
  bool tied = false;  // the last stage has a copy of the embedding
  int instances = 1;  // of the distributed optimizer

  int64_t dp_cp() const { return world / tp / pp; }
  int64_t dense_owners() const { return dp_cp() / instances; }
  int64_t edp() const { return world / pp / ep / etp; }
  int64_t key_heads() const { return std::max<int64_t>(1, kKeyHeads / tp); }  // replicated where there are fewer
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
  int64_t main_gradient() const { return precision_aware ? 2 : 4; }  // what the optimizer reads
  int level() const {  // 0 to 3: how many of optimizer, gradients and parameters are shared
    return sharding == "no_shard" ? 0 : sharding == "optim" ? 1 : sharding == "optim_grads" ? 2 : 3;
  }
};

inline std::vector<Layout> layouts() {
  return {{.name = "DP2", .world = 2, .every_form = true},
          {.name = "DP4", .world = 4, .every_form = true},
          {.name = "TP2 DP2", .world = 4, .tp = 2, .every_form = true},
          {.name = "PP2 DP2", .world = 4, .pp = 2, .every_form = true},
          {.name = "CP2 DP2", .world = 4, .cp = 2, .every_form = true},
          {.name = "EP2 EDP2 DP4", .world = 4, .ep = 2, .experts = true, .every_form = true},
          {.name = "DP4, 2 instances", .world = 4, .instances = 2},
          {.name = "TP2, no SP", .world = 2, .tp = 2, .sequence_parallel = false},
          {.name = "TP4", .world = 4, .tp = 4},
          {.name = "PP4", .world = 4, .pp = 4},
          {.name = "PP2 VPP2", .world = 2, .pp = 2, .virtual_pipeline = 2},
          {.name = "PP2, tied", .world = 2, .pp = 2, .tied = true},
          {.name = "TP2 PP2", .world = 4, .tp = 2, .pp = 2},
          {.name = "CP4", .world = 4, .cp = 4},
          {.name = "CP2 all_gather", .world = 2, .cp = 2, .exchange = "all_gather"},
          {.name = "CP2 a2a", .world = 2, .cp = 2, .exchange = "a2a"},
          {.name = "CP4 a2a+p2p", .world = 4, .cp = 4, .exchange = "a2a+p2p"},
          {.name = "CP2 EP2", .world = 2, .cp = 2, .ep = 2, .experts = true},
          {.name = "EP4", .world = 4, .ep = 4, .experts = true},
          {.name = "EP2 allgather", .world = 2, .ep = 2, .experts = true, .dispatcher = "allgather"},
          {.name = "TP2 EP4", .world = 4, .tp = 2, .ep = 4, .experts = true},
          {.name = "TP2 ETP2 EP2", .world = 4, .tp = 2, .ep = 2, .etp = 2, .experts = true}};
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
                {"vocab_size", kVocab},
                {"tie_word_embeddings", layout.tied}});
  if (layout.experts) model.update({{"num_local_experts", kExperts}, {"num_experts_per_tok", kExperts}});
  return model;
}

inline json policy_of(const Layout& layout, const Form& form, const std::filesystem::path& model) {
  json keys = {{"tensor_model_parallel_size", layout.tp},
               {"pipeline_model_parallel_size", layout.pp},
               {"context_parallel_size", layout.cp},
               {"expert_model_parallel_size", layout.ep},
               {"expert_tensor_parallel_size", layout.etp},
               {"sequence_parallel", layout.tokens_sharded()},
               {"cp_comm_type", layout.exchange},
               {"moe_token_dispatcher_type", layout.dispatcher},
               {"distributed_data_parallel_config",
                {{"data_parallel_sharding_strategy", form.sharding},
                 {"grad_reduce_in_fp32", form.fp32_gradients},
                 {"num_distributed_optimizer_instances", layout.instances}}},
               {"optimizer", {{"lr", 1e-3}, {"use_precision_aware_optimizer", form.precision_aware}}}};
  if (layout.virtual_pipeline > 1) keys["virtual_pipeline_model_parallel_size"] = layout.virtual_pipeline;
  if (layout.exchange == "a2a+p2p") keys["hierarchical_context_parallel_sizes"] = {2, layout.cp / 2};
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
  const int64_t attention = 2 * kHidden * kHeadDim * (kHeads / layout.tp + layout.key_heads()), norms = 2 * kHidden,
                mlp = 3 * kHidden * kFfn, vocabulary = kVocab * kHidden / layout.tp, here = layers / layout.pp;
  const int64_t dense = attention + norms + (layout.experts ? kExperts * kHidden : mlp / layout.tp),
                expert = layout.experts ? kExperts / layout.ep * mlp / layout.etp : 0;
  const bool first = layout.stage(rank) == 0, last = layout.stage(rank) == layout.pp - 1;
  return {here * dense + (first ? vocabulary : 0) + (last ? vocabulary + kHidden : 0), here * expert, dense + expert};
}

}  // namespace layout_bytes
