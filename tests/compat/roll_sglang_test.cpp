// actor_infer's strategy sglang: the generator of that name, and what becomes of each key of its strategy_config.
#include "tests/compat/roll_file.hpp"

using namespace compat_test;
using hexad::config::Resolved;
using hexad::yaml::Node;

namespace {

const std::string kSettings = "++actor_infer.strategy_args.strategy_config";
const std::string kCfg = "policy.generation.sglang_cfg.";
const Overrides kSglang = {"actor_infer.strategy_args.strategy_name=sglang", "++actor_infer.generating_args.top_p=1.0",
                           "++actor_infer.generating_args.top_k=-1"};

Overrides with(const Overrides& more) {
  Overrides all = kSglang;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

struct Row {
  std::string settings;     // of strategy_config
  std::string path, value;  // what comes out, as JSON
};

}  // namespace

TEST_CASE("the strategy sglang is the generator sglang, with each of its settings") {
  const std::vector<Row> rows = {
      {"{mem_fraction_static: 0.7}", kCfg + "mem_fraction_static", "0.7"},
      {"{tensor_parallel_size: 1}", kCfg + "tp_size", "1"},
      {"{pipeline_parallel_size: 1}", kCfg + "pp_size", "1"},
      {"{}", kCfg + "sglang_server_config.needs_offload", "true"},
      {"{enable_memory_saver: false}", kCfg + "sglang_server_config.needs_offload", "false"},
      {"{}", kCfg + "disable_custom_all_reduce", "true"},
      {"{disable_custom_all_reduce: false}", kCfg + "disable_custom_all_reduce", "false"},
      {"{chunked_prefill_size: 4096}", kCfg + "chunked_prefill_size", "4096"},
      {"{max_running_requests: 64}", kCfg + "max_running_requests", "64"},
      {"{attention_backend: fa3}", kCfg + "attention_backend", "\"fa3\""},
      {"{log_level: warning}", kCfg + "log_level", "\"warning\""},
      {"{disable_cuda_graph: true}", kCfg + "disable_cuda_graph", "true"},
      {"{load_format: auto}", "policy.generation.sglang_kwargs.load_format", "\"auto\""},
      {"{dist_timeout: 30}", "policy.generation.sglang_kwargs.dist_timeout", "30"},
      {"{additional_configs: {page_size: 16}}", "policy.generation.sglang_kwargs.page_size", "16"}};
  for (const Row& row : rows) {
    INFO(row.settings);
    const Resolved resolved = compat_test::resolve_text(with({kSettings + "=" + row.settings}), kRollFile);
    CHECK(resolved.root.as_string("policy.generation.backend") == "sglang");
    const Node* found = resolved.root.find(row.path);
    REQUIRE(found);
    CHECK(found->to_json().dump() == row.value);
  }
}

TEST_CASE("a worker's GPUs and type are those of its server") {
  const Resolved resolved =
      resolve_text(with({"++actor_infer.num_gpus_per_worker=1", "++actor_infer.model_args={dtype: fp16}"}), kRollFile);
  CHECK(resolved.root.as_int(kCfg + "tp_size") == 1);
  CHECK(resolved.root.as_string(kCfg + "dtype") == "float16");
  // More than one: a server has its rank's device alone.
  check_says(
      resolve_error(with({"++actor_infer.num_gpus_per_worker=2", "++hexad={cluster: {device: cuda}}"}), kRollFile),
      kCfg + "tp_size: got 2, wanted 1: a server is given its rank's one CUDA device");
  CHECK(resolve_text(with({kSettings + "={tensor_parallel_size: 1}", "++actor_infer.num_gpus_per_worker=2"}), kRollFile)
            .root.as_int(kCfg + "tp_size") == 1);
}

TEST_CASE("a key of sglang's strategy_config that is not carried over is named") {
  const auto tells_of = [](const std::string& settings, const std::string& key, const std::string& words) {
    Resolved resolved = resolve_text(with({kSettings + "=" + settings}), kRollFile);
    CHECK_MESSAGE(tells(resolved, key, words), settings);
    return resolved;
  };
  const Resolved dummy = tells_of("{load_format: dummy}", "load_format", "dummy is not carried over");
  CHECK(!dummy.root.find("policy.generation.sglang_kwargs.load_format"));
  tells_of("{port: 30000}", "port", "ROLL sets it itself");
  tells_of("{model_path: x, dtype: half}", "{model_path, dtype}", "ROLL sets it itself");
  tells_of("{dist_timeout: 30, page_size: 16}", "{dist_timeout, page_size}", "handed on to SGLang as it stands");
  const auto refuses = [](const std::string& settings, const std::string& words) {
    check_says(resolve_error(with({kSettings + "=" + settings}), kRollFile), words);
  };
  refuses("{grpc_mode: true}", "strategy_config.grpc_mode: SGLang by gRPC (which ROLL refuses too) is not available");
  refuses("{quantization: fp8}", "strategy_config.quantization: quantised weights at a server is not available");
  refuses("{enable_lora: true}", "strategy_config.enable_lora: LoRA is not available");
  refuses("{mem_fraction_static: much}", "strategy_config.mem_fraction_static: got text 'much', wanted a number");
  refuses("{host: 0.0.0.0}", "the bridge's to set");
}

TEST_CASE("servers of devices of their own keep their memory") {
  const Overrides apart = with({"++async_generation_ratio=1", "actor_infer.device_mapping='list(range(4,8))'"});
  const Resolved resolved = resolve_text(apart, kRollFile);
  CHECK(!resolved.root.at("policy.generation.colocated").as_bool("enabled"));
  CHECK(resolved.root.find(kCfg + "sglang_server_config.needs_offload")->to_json() == false);
  Overrides asked = apart;
  asked.push_back(kSettings + "={enable_memory_saver: true}");
  CHECK(tells(resolve_text(asked, kRollFile), "enable_memory_saver", "not carried over: the servers have devices of"));
}

TEST_CASE("ROLL's defaults of sampling go with SGLang, which takes both filters at once") {
  const Resolved resolved = resolve_text({"actor_infer.strategy_args.strategy_name=sglang"}, kRollFile);
  CHECK(resolved.root.as_string("policy.generation.backend") == "sglang");
  CHECK(has_notice(resolved, "policy.generation.top_k", "got 50 beside top_p 0.7: SGLang draws from the tokens"));
}
