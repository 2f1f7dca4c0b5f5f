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
