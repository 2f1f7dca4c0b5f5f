// Keys that make no sense are refused when an instance is made, with what was wanted.
#include "tests/plugins/vllm_bridge/support/harness.hpp"

using namespace vllm_test;

namespace {

std::string error_with(const Json& cfg, const Json& section = Json::object()) {
  const FakeVllm server;
  try {
    const Harness harness({&server}, cfg, section);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// What the plugin makes of a section, as text: options of its servers and how it asks them.
std::string settings_of(const std::string& key, const Json& value, DLDeviceType device) {
  const ModelDir model;
  hexad::plugin::CallContext context;
  context.device = {device, 0};
  hexad::plugin::Call call(context, "test");
  Json section = {{"model_name", model.path().string()}, {"vllm_cfg", Json::object()}};
  section["vllm_cfg"][key] = value;
  const hexad::plugin::PluginConfig config("policy.generation", section);
  const hexad::sdk::Call service(logging_host(), call.handle());
  const hexad::vllm::Settings settings =
      hexad::vllm::read_settings(service, hexad::sdk::Config(service, config.handle()));
  std::string text = settings.refit_address + (settings.common.seed_requests ? " seeded" : "");
  for (const std::string& argument : settings.common.spawn.arguments) text += " " + argument;
  return text;
}

}  // namespace

TEST_CASE("numbers out of range are refused with their range") {
  CHECK(error_with({}) == "");
  CHECK(error_with({{"num_servers", 0}}) == "vllm_cfg.num_servers: got 0, wanted 1 to 1024");
  CHECK(error_with({{"num_servers", 1025}}) == "vllm_cfg.num_servers: got 1025, wanted 1 to 1024");
  CHECK(error_with({}, {{"port_range_low", 0}}) == "port_range_low: got 0, wanted 1 to 65535");
  CHECK(error_with({}, {{"port_range_high", 70000}}) == "port_range_high: got 70000, wanted 3000 to 65535");
  CHECK(error_with({}, {{"port_range_low", 4000}, {"port_range_high", 3999}}) ==
        "port_range_high: got 3999, wanted 4000 to 65535");
  CHECK(error_with({{"max_running_requests", 0}}) == "vllm_cfg.max_running_requests: got 0, wanted at least 1");
  CHECK(error_with({{"max_attempts", 0}}) == "vllm_cfg.max_attempts: got 0, wanted at least 1");
  for (const char* key :
       {"startup_timeout_s", "control_timeout_s", "health_timeout_s", "stall_timeout_s", "lost_timeout_s"}) {
    CAPTURE(key);
    const std::string name = std::string("vllm_cfg.") + key;
    CHECK(error_with({{key, 0}}) == name + ": got 0, wanted more than 0 seconds and at most 1e7");
    CHECK(error_with({{key, 1e308}}) == name + ": got 1e+308, wanted more than 0 seconds and at most 1e7");
  }
}

TEST_CASE("servers are dealt out over the replicas of a run") {
  const FakeVllm a, b, c;
  const auto share = [&](int64_t index, int64_t count) {
    Harness harness({&a, &b, &c}, {{"max_running_requests", 1}}, {{"replica_index", index}, {"replica_count", count}});
    hexad_generator_info info{};
    harness->describe(harness.service(), info);
    return info.max_sequences;
  };
  CHECK(share(0, 1) == 3);
  CHECK(share(0, 2) == 2);
  CHECK(share(1, 2) == 1);
  CHECK(error_with({}, {{"replica_index", 1}, {"replica_count", 2}}).find("got 1 servers for 2 ranks") !=
        std::string::npos);
}

TEST_CASE("texts and lists that mean nothing are refused") {
  CHECK(error_with({{"server_command", "vllm"}}) == "vllm_cfg.server_command: got \"vllm\", wanted a list of texts");
  CHECK(error_with({{"api_key_env_var", "HEXAD_NO_SUCH_VARIABLE"}}) ==
        "vllm_cfg.api_key_env_var: the environment has no variable HEXAD_NO_SUCH_VARIABLE");
  CHECK(error_with({}, {{"refit_transport", "nccl"}}) ==
        "refit_transport: got 'nccl', which goes from GPU to GPU, and this rank has none");
  CHECK(error_with({}, {{"return_routed_experts", true}}).find("which this bridge does not fetch yet") !=
        std::string::npos);
  CHECK(error_with({}, {{"model_name", ""}}) == "model_name is missing: wanted a Hugging Face directory");
  CHECK(error_with({}, {{"model_name", "/no/such/model"}}) ==
        "model_name: /no/such/model has no readable config.json; wanted a Hugging Face directory");
}

TEST_CASE("each key of a server of one's own is told to vLLM, or changes how it is asked") {
  const std::map<std::string, Json> keys = {{"precision", "bfloat16"},
                                            {"kv_cache_dtype", "bfloat16"},
                                            {"logprobs_mode", "raw_logprobs"},
                                            {"expert_parallel_size", 2},
                                            {"max_model_len", 77},
                                            {"enforce_eager", true},
                                            {"enable_prefix_caching", false},
                                            {"enable_expert_parallel", true},
                                            {"distributed_executor_backend", "mp"},
                                            {"load_format", "safetensors"},
                                            {"refit_address", "10.0.0.7"},
                                            {"seed_requests", false},
                                            {"pipeline_parallel_size", 2}};
  for (const auto& [key, value] : keys)
    CHECK_MESSAGE(settings_of(key, value, kDLCPU) != settings_of("", nullptr, kDLCPU), key);
  CHECK(settings_of("gpu_memory_utilization", 0.5, kDLCUDA) != settings_of("", nullptr, kDLCUDA));
  CHECK(settings_of("expert_parallel_size", 2, kDLCPU) == settings_of("enable_expert_parallel", true, kDLCPU));
}
