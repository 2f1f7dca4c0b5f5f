// The keys of actor_infer's strategy_config under `sglang`: ROLL's own, and the flags of the server that are keys here.
#include "compat/roll/missing.hpp"
#include "compat/roll/schema/schema.hpp"

namespace hexad::config::roll {
namespace {

using Names = std::initializer_list<const char*>;

void add_flags(Schema& s, Kinds kinds, Names names) {
  for (const char* name : names) s.add(name, kinds | kNull, "null", "as policy.generation.sglang_cfg's");
}

}  // namespace

void add_sglang(Schema& s) {
  s.add("tensor_parallel_size", kInt | kNull, "null", "ranks that share each layer; null: num_gpus_per_worker")
      .at_least(1);
  s.add("pipeline_parallel_size", kInt, "1", "ranks that share the layers").at_least(1);
  s.add("enable_memory_saver", kBool | kNull, "true", "a server gives memory back while the policy trains");
  s.add("disable_custom_all_reduce", kBool | kNull, "true", "as policy.generation.sglang_cfg's");
  s.add("load_format", kText | kNull, "null", "how a server loads weights; dummy: it has none before the first update");
  add_flags(s, kFloat, {"mem_fraction_static", "schedule_conservativeness"});
  add_flags(s, kInt,
            {"chunked_prefill_size", "max_prefill_tokens", "max_running_requests", "context_length", "dp_size",
             "ep_size", "torch_compile_max_bs", "cpu_offload_gb", "num_continuous_decode_steps", "log_requests_level",
             "decode_log_interval"});
  add_flags(s, kText,
            {"attention_backend", "sampling_backend", "kv_cache_dtype", "schedule_policy", "torchao_config",
             "log_level", "log_level_http"});
  add_flags(s, kBool,
            {"disable_cuda_graph", "disable_radix_cache", "disable_cuda_graph_padding", "disable_overlap_schedule",
             "enable_mixed_chunk", "enable_dp_attention", "enable_deepep_moe", "enable_ep_moe", "enable_torch_compile",
             "enable_nccl_nvls", "enable_p2p_check", "enable_nan_detection", "enable_metrics", "log_requests",
             "show_time_cost", "skip_server_warmup", "allow_auto_truncate"});
  for (const char* name : {"model_path", "dtype", "random_seed", "skip_tokenizer_init", "trust_remote_code", "tp_size",
                           "port", "nnodes", "node_rank", "dist_init_addr", "enable_return_routed_experts"}) {
    s.add(name, kAny, "", "")
        .open()
        .accepted(
            "ROLL sets it itself, from model_args, tensor_parallel_size and num_gpus_per_worker, whatever stands here");
  }
  s.add("grpc_mode", kBool | kNull, "null", "")
      .unavailable("SGLang by gRPC (which ROLL refuses too)", {"null", "false"});
  s.add("quantization", kText | kNull, "null", "").unavailable("quantised weights at a server", {"null"});
  s.add("enable_lora", kBool | kNull, "null", "").unavailable(kAdapters, {"null", "false"});
}

}  // namespace hexad::config::roll
