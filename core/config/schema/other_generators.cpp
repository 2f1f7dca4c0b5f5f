#include "core/config/schema/blocks.hpp"

namespace hexad::config {

// Blocks of generators that a config holds beside the one it chooses.
void add_other_generators(Schema& s) {
  const std::string at = "policy.generation.mcore_generation_config";
  s.section(at, "Megatron-Core's own inference engine").accepted("that engine does not run here; native and vllm do");
  s.add(at + ".max_model_len", kInt, "${policy.max_total_sequence_length}", "most tokens of a sequence").at_least(1);
  s.add(at + ".cuda_graph_impl", kText, "local", "kind of CUDA graphs");
  s.add(at + ".inference_cuda_graph_scope", kText, "block", "what a graph covers");
  s.add(at + ".buffer_size_gb", kFloat, "10", "KV cache").above(0);
  s.add(at + ".buffer_guaranteed_fraction", kFloat, "", "part of it kept for running requests");
  s.add(at + ".num_cuda_graphs", kInt, "4", "number of graphs; -1: chosen").at_least(-1);
  s.add(at + ".block_size_tokens", kInt, "256", "tokens in a block of the KV cache").at_least(1);
  s.add(at + ".use_cuda_graphs_for_non_decode_steps", kBool, "true", "graphs for prefill");
  s.add(at + ".enable_chunked_prefill", kBool, "true", "chunked prefill");
  s.add(at + ".enable_prefix_caching", kBool, "false", "prefix cache");
  s.add(at + ".max_tokens", kInt, "16384", "most tokens of a pass").at_least(1);
  s.add(at + ".kv_cache_management_mode", kText, "persist", "what becomes of the KV cache while training");
  s.add(at + ".materialize_only_last_token_logits", kBool, "true", "saves memory");
  s.add(at + ".num_speculative_tokens", kInt, "0", "speculative decoding").at_least(0);
  s.add(at + ".refit_backend", kText, "nccl", "transport of weights");
  s.add(at + ".parsers", kList, "[]", "tool and response parsers");
  s.add(at + ".expose_http_server", kBool, "false", "an OpenAI server");
  for (const char* size : {"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
                           "expert_model_parallel_size", "expert_tensor_parallel_size", "unified_memory_level"}) {
    s.add(at + "." + size, kInt | kNull, "", "layout of the inference engine");
  }
  for (const char* flag : {"sequence_parallel", "activation_checkpointing"}) {
    s.add(at + "." + flag, kBool | kNull, "", "layout of the inference engine");
  }
  for (const char* choice :
       {"transformer_impl", "inference_grouped_gemm_backend", "inference_moe_token_dispatcher_type",
        "mamba_inference_ssm_states_dtype", "moe_router_dtype"}) {
    s.add(at + "." + choice, kText | kNull, "", "implementation inside the inference engine");
  }
  for (const char* number : {"moe_router_num_groups", "moe_router_group_topk"}) {
    s.add(at + "." + number, kInt | kNull, "", "expert routing");
  }
  for (const char* other : {"sglang_cfg", "trtllm_cfg", "trtllm_kwargs", "dynamo_cfg"}) {
    s.add(std::string("policy.generation.") + other, kMap | kNull, "", "settings of another generator")
        .open()
        .accepted("that generator does not run here; native and vllm do");
  }
}

}  // namespace hexad::config
