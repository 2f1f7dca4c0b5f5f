#include "core/config/schema/megatron.hpp"

namespace hexad::config {
namespace {

constexpr const char* kExchange = "tokens are exchanged all to all, which comes to the same";
constexpr const char* kBalance = "the balance of experts is not logged";

void add_router(Schema& s) {
  megatron_key(s, "freeze_moe_router", kBool, "true", "do not train the router");
  megatron_key(s, "moe_router_dtype", kText | kNull, "fp64", "type of the router's computation; null: the model's")
      .one_of({"fp32", "fp64"});
  megatron_key(s, "moe_router_load_balancing_type", kText | kList, "none", "load-balancing loss, or a list of them")
      .one_of({"none", "aux_loss", "seq_aux_loss", "global_aux_loss"})
      .not_built({"sinkhorn", "quantile_balancing"})
      .elements(kText);
  megatron_key(s, "moe_aux_loss_coeff", kFloat | kList, "0.0", "weight of that loss, or a list of weights")
      .at_least(0)
      .elements(kFloat);
  megatron_key(s, "moe_z_loss_coeff", kFloat | kNull, "null", "weight of the loss that keeps router logits small")
      .at_least(0);
  megatron_key(s, "moe_router_score_function", kText | kNull, "null", "scores of experts; null: the model's")
      .one_of({"softmax", "sigmoid"});
  megatron_key(s, "moe_router_pre_softmax", kBool | kNull, "null",
               "softmax over all experts, before the choice; null: the model's");
  megatron_key(s, "moe_router_bias_update_rate", kFloat, "0.0", "step of the expert bias, of models that have one")
      .at_least(0);
  megatron_key(s, "moe_router_enable_expert_bias", kBool, "false",
               "the router has an expert bias; one that the model has is used anyway");
  megatron_key(s, "moe_router_num_groups", kInt | kNull, "null", "groups of experts; null: the model's").at_least(1);
  megatron_key(s, "moe_router_group_topk", kInt | kNull, "null", "groups that a token may choose; null: the model's")
      .at_least(1);
}

void add_dispatcher(Schema& s) {
  megatron_key(s, "moe_token_dispatcher_type", kText, "alltoall", "how tokens reach their experts")
      .one_of({"alltoall", "allgather"})
      .read_as("alltoall", {"flex"}, "the same tokens reach the same experts");
  megatron_key(s, "moe_flex_dispatcher_backend", kText | kNull, "null", "which flex dispatcher").accepted(kExchange);
  megatron_key(s, "moe_hybridep_num_sms", kInt | kNull, "null", "of the HybridEP dispatcher").dormant();
  megatron_key(s, "hybridep_num_ranks_per_nvlink_domain", kInt | kNull, "null", "of the HybridEP dispatcher").dormant();
  megatron_key(s, "hybridep_use_mnnvl", kBool | kNull, "null", "of the HybridEP dispatcher").dormant();
  megatron_key(s, "moe_enable_deepep", kBool, "false", "the DeepEP dispatcher").accepted(kExchange);
  megatron_key(s, "moe_shared_expert_overlap", kBool, "false", "overlap the shared expert with communication");
  megatron_key(s, "moe_expert_capacity_factor", kFloat | kNull, "null",
               "most tokens of an expert, as a multiple of the mean; null: dropless")
      .above(0);
  megatron_key(s, "moe_pad_expert_input_to_capacity", kBool, "false", "pad each expert's tokens to its capacity");
  megatron_key(s, "moe_token_drop_policy", kText, "probs", "which tokens are dropped beyond capacity")
      .one_of({"probs", "position"});
}

}  // namespace

void add_megatron_model(Schema& s) {
  megatron_key(s, "model_overrides", kMap | kNull, "{}",
               "keys of this section that NeMo-RL's provider takes here; each counts as written in megatron_cfg itself")
      .open();
  megatron_key(s, "freeze_config", kMap | kNull, "null", "parts of the model that are not trained")
      .open()
      .unavailable("freezing parts of the model", {"null", "{}"});
  megatron_key(s, "layernorm_epsilon", kFloat | kNull, "null", "epsilon of the norms")
      .unavailable("another epsilon here (policy.hf_config_overrides: {rms_norm_eps: ...} sets it)", {"null"});
  megatron_key(s, "mtp_num_layers", kInt | kNull, "0", "layers of multi-token prediction")
      .at_least(0)
      .unavailable("training of multi-token prediction", {"0", "null"});
  megatron_key(s, "mtp_loss_scaling_factor", kFloat | kNull, "0.0", "weight of their loss").dormant();
  megatron_key(s, "mtp_use_repeated_layer", kBool, "false", "they share one layer").dormant();
  megatron_key(s, "mtp_detach_heads", kBool, "false", "they send no gradient into the model").dormant();
  megatron_key(s, "converter_type", kText, "", "Hugging Face architecture (NeMo-RL 0.3)")
      .accepted("the family is read from the model's config.json");
  for (const auto& [name, part] : {std::pair{"freeze_vision_model", "the vision encoder"},
                                   std::pair{"freeze_vision_projection", "the vision encoder's projection"},
                                   std::pair{"freeze_sound_encoder", "the sound encoder"},
                                   std::pair{"freeze_sound_projection", "the sound encoder's projection"}}) {
    s.add(std::string("policy.megatron_cfg.") + name, kBool, "", std::string("do not train ") + part)
        .accepted("a text model has no such part");
  }
  megatron_key(s, "radio_force_cpe_eval_mode", kBool, "false", "of a vision encoder").unavailable("a vision encoder");
}

void add_megatron_experts(Schema& s) {
  add_router(s);
  add_dispatcher(s);
  megatron_key(s, "moe_grouped_gemm", kBool, "true", "one kernel for all experts")
      .accepted("experts are computed by one kernel wherever there is such a kernel");
  megatron_key(s, "moe_permute_fusion", kBool, "true", "fused permutation")
      .accepted("tokens are permuted by one kernel either way");
  megatron_key(s, "moe_per_layer_logging", kBool, "false", "log each layer's balance").accepted(kBalance);
  megatron_key(s, "track_moe_metrics", kBool, "false", "log the balance").accepted(kBalance);
  megatron_key(s, "moe_pad_experts_for_cuda_graph_inference", kBool | kNull, "null", "of Megatron's inference engine")
      .accepted("policy.generation names the generator; Megatron's inference engine is not used");
}

}  // namespace hexad::config
