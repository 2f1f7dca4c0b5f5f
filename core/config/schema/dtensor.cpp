#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

void add_lora(Schema& s) {
  const std::string at = "policy.dtensor_cfg.lora_cfg";
  s.section(at, "low-rank adapters").unavailable("LoRA", {});
  s.add(at + ".enabled", kBool, "false", "train adapters only").unavailable("LoRA");
  s.add(at + ".target_modules", kList, "[]", "names of the linear layers").elements(kText);
  s.add(at + ".exclude_modules", kList, "[]", "names left out").elements(kText);
  s.add(at + ".match_all_linear", kBool, "true", "all linear layers");
  s.add(at + ".dim", kInt, "8", "rank").at_least(1);
  s.add(at + ".alpha", kFloat, "32", "scale is alpha / dim");
  s.add(at + ".dropout", kFloat, "0.0", "dropout").at_least(0).at_most(1);
  s.add(at + ".dropout_position", kText, "post", "before or after the adapter").one_of({"pre", "post"});
  s.add(at + ".lora_A_init", kText, "xavier", "initialisation of A").one_of({"xavier", "uniform"});
  s.add(at + ".use_triton", kBool, "true", "Triton kernels");
}

void add_automodel(Schema& s) {
  s.add("policy.dtensor_cfg._v2", kBool, "true", "which of NeMo-RL's two workers")
      .accepted("there is one dtensor backend; both of NeMo-RL's workers map to it");
  s.add("policy.dtensor_cfg.automodel_kwargs", kMap | kNull, "{}", "arguments of NeMo Automodel")
      .open()
      .accepted(
          "the model is this engine's own; of NeMo Automodel's arguments only backend.dispatcher has a meaning for it: "
          "torch gathers all tokens for the experts, deepep and hybridep exchange them");
  s.add("policy.dtensor_cfg.clear_cache_every_n_steps", kInt | kNull, "null", "empty PyTorch's allocator cache")
      .at_least(1)
      .accepted("the allocator's cache is kept");
  s.add("policy.dtensor_cfg.env_vars", kMap | kNull, "{}", "environment of the Ray workers")
      .open()
      .accepted("set variables in the environment of `hexad train`; the workers inherit it");
  s.section("policy.dtensor_cfg.moe_parallelizer", "expert parallelism of NeMo Automodel")
      .accepted("experts are freed, and recomputed, with their blocks");
  for (const char* key : {"ignore_router_for_ac", "reshard_after_forward", "wrap_outer_model"}) {
    s.add(std::string("policy.dtensor_cfg.moe_parallelizer.") + key, kBool, "false", "of expert parallelism");
  }
  s.add("policy.dtensor_cfg.moe_parallelizer.lm_head_precision", kText | kNull, "null", "of expert parallelism");
}

}  // namespace

void add_dtensor(Schema& s) {
  s.section("policy.dtensor_cfg", "the dtensor backend (FSDP2)");
  s.add("policy.dtensor_cfg.enabled", kBool, "true", "train with it (not with megatron_cfg.enabled)").not_filled();
  s.add("policy.dtensor_cfg.activation_checkpointing", kBool, "false", "recompute activations block by block");
  s.add("policy.dtensor_cfg.reshard_after_forward", kBool | kNull, "null",
        "free a block's gathered weights when it has computed; false keeps them through all micro-batches of a step "
        "(ZeRO 2), null keeps as many as a GPU's free memory allows, on a CPU none (a key of Hexad)");
  s.add("policy.dtensor_cfg.defer_fsdp_grad_sync", kBool | kNull, "null",
        "add gradients up over the micro-batches of a step and reduce them with the last; null does so for as many "
        "blocks as a GPU's free memory allows, on a CPU and with policy.deterministic for none: the order of sums "
        "follows");
  s.add("policy.dtensor_cfg.tensor_parallel_size", kInt, "1", "ranks that share each layer").at_least(1);
  s.add("policy.dtensor_cfg.context_parallel_size", kInt, "1", "ranks that share each sequence").at_least(1);
  s.add("policy.dtensor_cfg.cp_comm_type", kText | kList, "p2p",
        "how context-parallel ranks exchange keys and values: p2p, all_gather, a2a, a2a+p2p, or a list with one for "
        "each layer (a key of Hexad; NeMo-RL has torch's ring alone)")
      .elements(kText);
  s.add("policy.dtensor_cfg.hierarchical_context_parallel_sizes", kList | kNull, "null",
        "a2a+p2p: sizes of the inner and the outer exchange, whose product is context_parallel_size (a key of Hexad)")
      .elements(kInt);
  s.add("policy.dtensor_cfg.expert_parallel_size", kInt, "1", "ranks that share the experts").at_least(1);
  s.add("policy.dtensor_cfg.dp_replicate_size", kInt, "1", "groups that each hold all weights (HSDP)").at_least(1);
  s.add("policy.dtensor_cfg.sequence_parallel", kBool, "false",
        "share norms along the sequence, with tensor parallelism");
  s.add("policy.dtensor_cfg.cpu_offload", kBool, "false", "keep weights and optimizer in host memory");
  s.add("policy.dtensor_cfg.custom_parallel_plan", kText | kNull, "null", "Python path of a parallel plan")
      .unavailable("a parallel plan in Python", {"null"});
  add_fp8(s, "policy.dtensor_cfg", "tensorwise", /*filled=*/true);
  add_lora(s);
  add_automodel(s);
}

}  // namespace hexad::config
