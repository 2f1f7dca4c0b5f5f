#include "core/config/schema/megatron.hpp"

namespace hexad::config {
namespace {

void add_recompute(Schema& s) {
  megatron_key(s, "activation_checkpointing", kBool, "false", "recompute activations");
  megatron_key(s, "recompute_granularity", kText, "full", "what is recomputed").one_of({"full", "selective"});
  megatron_key(s, "recompute_method", kText | kNull, "null",
               "full: `uniform` cuts all layers into pieces of recompute_num_layers, `block` recomputes the first so "
               "many of a stage; null: every layer")
      .one_of({"uniform", "block"});
  megatron_key(s, "recompute_num_layers", kInt | kNull, "null", "of recompute_method; null: 1").at_least(1);
  megatron_key(s, "recompute_modules", kList | kNull, "null", "selective: which modules; null: core_attn")
      .elements(kText);
  megatron_key(s, "fine_grained_activation_offloading", kBool, "false", "move activations to host memory")
      .unavailable("moving activations to host memory");
  megatron_key(s, "offload_modules", kList | kNull, "null", "those of which modules").elements(kText).dormant();
}

void add_kernels(Schema& s) {
  for (const char* name : {"apply_rope_fusion", "bias_activation_fusion"}) {
    megatron_key(s, name, kBool, "true", "a fused kernel").accepted("a fused kernel runs wherever there is one");
  }
  megatron_key(s, "gradient_accumulation_fusion", kBool, "false", "weight gradients accumulate in the matrix product")
      .accepted("weight gradients are added to the main gradients right after their product");
  megatron_key(s, "use_fused_weighted_squared_relu", kBool, "false", "fused activation of Nemotron")
      .unavailable("Nemotron's activation");
  megatron_key(s, "use_fused_linear_logprobs", kBool, "false", "log-probs without holding the logits")
      .accepted("logits are never held whole, whatever this says");
  megatron_key(s, "fused_linear_logprobs_chunk_size", kInt, "256", "tokens at once in it")
      .at_least(1)
      .accepted("policy.logprob_chunk_size is the key that is read");
  megatron_key(s, "defer_fp32_logits", kBool, "false", "logits stay in low precision until the loss")
      .accepted("logits are never held whole; those of a chunk are float32 only inside the log-prob");
  for (const char* name : {"attention_backend", "transformer_impl"}) {
    megatron_key(s, name, kText | kNull, "null", "which of Megatron's implementations")
        .accepted("there is one implementation, whose kernels are chosen by device, type and shape");
  }
}

void add_graphs(Schema& s) {
  megatron_key(s, "cuda_graph_impl", kText | kNull, "none", "CUDA graphs in training")
      .unavailable("CUDA graphs in training", {"none", "null"});
  megatron_key(s, "cuda_graph_modules", kList | kNull, "[]", "what they cover").elements(kText).dormant();
  megatron_key(s, "cuda_graph_warmup_steps", kInt, "3", "steps before they are captured").at_least(0).dormant();
  for (const char* name :
       {"inference_cuda_graph_scope", "inference_moe_token_dispatcher_type", "inference_grouped_gemm_backend"}) {
    megatron_key(s, name, kText | kNull, "null", "of Megatron's inference engine")
        .accepted("policy.generation names the generator; Megatron's inference engine is not used");
  }
}

}  // namespace

void add_megatron_computation(Schema& s) {
  add_recompute(s);
  add_kernels(s);
  add_graphs(s);
  megatron_key(s, "empty_unused_memory_level", kInt, "1", "how often allocator caches are emptied")
      .at_least(0)
      .at_most(2)
      .accepted("the allocator's cache is kept");
  megatron_key(s, "clear_memory_caches_before_refit", kBool, "false", "empty them before a weight update")
      .accepted("the allocator's cache is kept");
  megatron_key(s, "env_vars", kMap | kNull, "null", "environment of the workers")
      .open()
      .accepted("set variables in the environment of `hexad train`; the workers inherit it");
  for (const char* unread : {"do_not_average_loss", "cp_normalize", "scale_loss_by_dp_cp_size",
                             "first_last_layers_bf16", "num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16"}) {
    megatron_key(s, unread, kAny, "", "").accepted("NeMo-RL reads this key nowhere, and neither does this engine");
  }
}

}  // namespace hexad::config
