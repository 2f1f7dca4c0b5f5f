#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

constexpr const char* kFp8 = "the bridge serves no FP8 weights";
constexpr const char* kMetrics = "metrics of a server's own are not sampled";
constexpr const char* kAgents = "the bridge's servers answer the bridge alone";
constexpr const char* kRefit = "policy.generation.refit_transport says how weights reach the servers";
constexpr const char* kImages = "prompts are text";
constexpr const char* kUnread = "NeMo-RL reads this key nowhere, and neither does this engine";
constexpr const char* kTokens = "token ids go in and out";

// The bridge's own keys: which servers, and when they count as lost.
void add_servers(Schema& s) {
  const auto key = [&](const char* name, Kinds kinds, const char* value, const char* meaning) {
    return s.add(std::string("policy.generation.vllm_cfg.") + name, kinds, value, meaning).effective();
  };
  key("server_urls", kList | kNull, "null",
      "vLLM servers to attach to, dealt out to the ranks: http://HOST:PORT; null: each rank starts its own")
      .elements(kText);
  key("api_key_env_var", kText | kNull, "null", "variable of the environment with the API key of those servers");
  key("num_servers", kInt, "1", "servers that a rank starts, on 127.0.0.1 and with a random API key").at_least(1);
  key("server_command", kList | kNull, "null",
      "program and first arguments that start a server; null: python3 -m vllm.entrypoints.openai.api_server")
      .elements(kText);
  key("server_log_dir", kText | kNull, "null", "folder for the logs of those servers; null: beside the weights");
  key("refit_dir", kText | kNull, "null",
      "folder where weights are written for the servers, which must see it too, with room for two copies; null: a "
      "temporary one");
  key("refit_address", kText, "127.0.0.1",
      "IPv4 address of the generator's host, where servers before vLLM 0.30 meet it for NCCL");
  key("max_running_requests", kInt, "256", "most requests at a server at once; others wait for one that has room")
      .at_least(1);
  key("max_attempts", kInt, "5", "attempts in a row that bring no token, after which a request ends with an error")
      .at_least(1);
  key("seed_requests", kBool, "true",
      "equal seeds give equal samples; false is faster on a GPU, where vLLM draws "
      "seeded rows one by one");
  key("startup_timeout_s", kFloat, "900", "longest start of a server").above(0);
  key("control_timeout_s", kFloat, "300",
      "longest pause, resume, sleep or reload of weights of a server, and wait for room on a full disk")
      .above(0);
  key("health_timeout_s", kFloat, "5", "longest answer about its health").above(0);
  key("stall_timeout_s", kFloat, "120", "longest silence of a server that has requests; they go elsewhere then")
      .above(0);
  key("lost_timeout_s", kFloat, "900", "longest time without any server, after which the run fails").above(0);
}

}  // namespace

void add_vllm(Schema& s) {
  const std::string at = "policy.generation.vllm_cfg";
  const auto key = [&](const char* name, Kinds kinds, const char* value, const char* meaning) {
    return s.add(at + "." + name, kinds, value, meaning).effective();
  };
  s.section(at, "the vLLM server").accepted("read by the vllm_bridge generator (policy.generation.backend: vllm)");
  key("async_engine", kBool, "false", "NeMo-RL's asynchronous workers").accepted("a server is always asynchronous");
  key("precision", kText, "${policy.precision}", "type of the weights").not_built({"fp8"});
  key("kv_cache_dtype", kText, "auto", "type of the KV cache").not_built({"fp8", "fp8_e4m3", "fp8_e5m2"});
  key("logprobs_mode", kText, "processed_logprobs", "log-probs after temperature and filters");
  key("tensor_parallel_size", kInt, "1", "ranks that share each layer").at_least(1);
  key("pipeline_parallel_size", kInt, "1", "ranks that share the layers").at_least(1);
  key("expert_parallel_size", kInt, "1",
      "above 1: as enable_expert_parallel; vLLM shares experts over all ranks of a layer")
      .at_least(1);
  key("gpu_memory_utilization", kFloat, "0.6", "part of a device's memory").above(0).at_most(1);
  key("max_model_len", kInt, "${policy.max_total_sequence_length}", "most tokens of a sequence").at_least(1);
  key("enforce_eager", kBool, "false", "without CUDA graphs and compilation");
  key("enable_prefix_caching", kBool | kNull, "null", "prefix cache; null: vLLM's choice");
  key("enable_expert_parallel", kBool, "false", "ranks of a layer share its experts");
  key("distributed_executor_backend", kText | kNull, "null", "how vLLM starts its ranks");
  key("load_format", kText, "auto",
      "how a server reads its first weights; dummy is taken for auto: no random weights are served");
  key("skip_tokenizer_init", kBool, "true", "a server without a tokenizer").accepted(kTokens);
  key("use_tqdm", kBool, "true", "progress bars of vLLM's own").accepted("the bridge shows no bars");
  key("use_deep_gemm", kBool, "false", "fp8 kernels").accepted(kFp8);
  key("pow2_weight_scaling_factors", kBool, "false", "fp8 scales").accepted(kFp8);
  key("num_first_layers_in_bf16", kInt, "0", "layers left out of fp8").at_least(0).accepted(kFp8);
  key("num_last_layers_in_bf16", kInt, "0", "layers left out of fp8").at_least(0).accepted(kFp8);
  key("quantization_ignored_layer_kws", kList | kNull, "null", "layers left out of fp8").elements(kText).accepted(kFp8);
  key("is_mx", kBool, "false", "MX formats").accepted(kFp8);
  key("enable_vllm_metrics_logger", kBool, "true", "sample the server's metrics").accepted(kMetrics);
  key("vllm_metrics_logger_interval", kFloat, "0.5", "seconds between samples").above(0).accepted(kMetrics);
  key("expose_http_server", kBool, "false", "an OpenAI server for agents").accepted(kAgents);
  s.add(at + ".http_server_serving_chat_kwargs", kMap | kNull, "{}", "its settings").open().accepted(kAgents);
  key("http_refit_api_key_env_var", kText | kNull, "null", "variable that holds the key of weight updates")
      .accepted(kRefit);
  key("http_refit_server_port", kInt | kNull, "null", "port of weight updates").accepted(kRefit);
  key("zmq_refit_server_port", kInt | kNull, "null", "port of weight updates").accepted(kRefit);
  key("reset_encoder_cache_after_weight_update", kBool, "false", "of vision models").accepted(kImages);
  key("tool_parser_plugin", kText | kNull, "null", "tool calls").accepted(kTokens);
  key("reasoning_parser_plugin", kText | kNull, "null", "thinking").accepted(kTokens);
  key("enforce_monotonicity", kBool, "", "of an agent's messages").accepted(kUnread);
  key("enable_thinking", kBool, "", "thinking")
      .accepted(std::string(kUnread) + "; policy.tokenizer.chat_template_kwargs is read");
  key("cap_max_tokens_to_context", kBool, "false", "shorten responses to what fits")
      .accepted("a request never asks for more than policy.max_total_sequence_length has room for");
  s.add(at + ".env_vars", kMap | kNull, "{}", "environment of the server").open().effective();
  s.add(at + ".limit_mm_per_prompt", kMap | kNull, "null", "images in a prompt").open().accepted(kImages);
  s.add(at + ".video", kMap | kNull, "null", "video settings").open().accepted(kImages);
  add_servers(s);
  s.add("policy.generation.vllm_kwargs", kMap | kNull, "{}", "further arguments of the vLLM server")
      .open()
      .accepted("read by the vllm_bridge generator (policy.generation.backend: vllm)");
}

}  // namespace hexad::config
