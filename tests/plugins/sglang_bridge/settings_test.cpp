// sglang_cfg as servers get it, and keys that make no sense.
#include <csignal>

#include "plugins/sglang_bridge/arguments.hpp"
#include "tests/plugins/server_bridge/support/moe_model.hpp"
#include "tests/plugins/sglang_bridge/support/harness.hpp"

using namespace sglang_test;

namespace {

std::string error_with(const Json& cfg, const Json& section = Json::object()) {
  const FakeSglang server;
  try {
    const Harness harness({&server}, cfg, section);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& part : list) text += part + " ";
  return text;
}

// What the plugin makes of a section, as text: how servers are started, and how they are asked.
std::string settings_of(const std::string& key, const Json& value, const ModelDir& model = ModelDir()) {
  const HostCall host;
  hexad::plugin::CallContext context;
  hexad::plugin::Call call(context, "test");
  Json section = {{"model_name", model.path().string()}, {"sglang_cfg", Json::object()}};
  section[Json::json_pointer(key.empty() ? "/none" : "/" + key)] = value;
  const hexad::plugin::PluginConfig config("policy.generation", section);
  const hexad::sdk::Call service(logging_host(), call.handle());
  const hexad::sglang::Settings settings =
      hexad::sglang::read_settings(service, hexad::sdk::Config(service, config.handle()));
  const hexad::bridge::Settings& s = settings.common;
  const hexad::bridge::Deadlines& d = s.deadlines;
  std::string text = joined(s.spawn.command) + joined(s.spawn.arguments) + joined(s.urls) + s.spawn.log_dir + " " +
                     s.refit_dir + " " + s.api_key + " " + settings.dialect.pause_mode + " " +
                     settings.dialect.refit_address;
  for (const auto& [name, of_it] : s.spawn.environment) text += " " + name + "=" + of_it;
  for (const double number :
       {d.startup.count(), d.control.count(), d.probe.count(), d.stall.count(), d.lost.count(),
        static_cast<double>(s.max_running), static_cast<double>(s.attempts), static_cast<double>(s.spawn.servers),
        static_cast<double>(s.seed_requests), static_cast<double>(settings.dialect.stream_interval)})
    text += " " + std::to_string(number);
  return text;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("numbers and words of sglang_cfg that mean nothing are refused with what was wanted") {
  CHECK(error_with({}) == "");
  CHECK(error_with({{"num_servers", 0}}) == "sglang_cfg.num_servers: got 0, wanted 1 to 1024");
  CHECK(error_with({{"max_running_requests", 0}}) == "sglang_cfg.max_running_requests: got 0, wanted at least 1");
  CHECK(error_with({{"stream_interval", 0}}) == "sglang_cfg.stream_interval: got 0, wanted at least 1");
  CHECK(error_with({{"stall_timeout_s", 0}}) ==
        "sglang_cfg.stall_timeout_s: got 0, wanted more than 0 seconds and at most 1e7");
  CHECK(error_with({{"sglang_server_config", {{"pause_generation_mode", "keep"}}}}) ==
        "sglang_cfg.sglang_server_config.pause_generation_mode: got 'keep', wanted retract, in_place or abort");
  CHECK(error_with({}, {{"refit_transport", "nixl"}}) ==
        "refit_transport: got 'nixl'. Weights reach SGLang by disk, gloo, ipc or nccl; without the key by disk");
  for (const char* transport : {"ipc", "nccl"}) {
    CHECK(error_with({}, {{"refit_transport", transport}}) ==
          std::string("refit_transport: got '") + transport + "', which goes from GPU to GPU, and this rank has none");
  }
  hexad::sglang::refuse_nccl_on_one_gpu("ipc", {});
  hexad::sglang::refuse_nccl_on_one_gpu("nccl", {{"CUDA_VISIBLE_DEVICES", "1"}});
  CHECK_THROWS_WITH_AS(
      hexad::sglang::refuse_nccl_on_one_gpu("nccl", {{"A", "1"}}),
      "refit_transport: got 'nccl', and a server that a rank starts is on the rank's own GPU, of which NCCL takes one "
      "process: use ipc, or name the server's GPUs in sglang_cfg.env_vars.CUDA_VISIBLE_DEVICES",
      hexad::sdk::Error);
  CHECK(error_with({}, {{"refit_transport", "gloo"}}) == "");
  CHECK(error_with({}, {{"refit_transport", "disk"}}) == "");
  CHECK(error_with({}, {{"return_routed_experts", true}}).starts_with("router replay: "));
  const MoeModelDir experts;
  CHECK(settings_of("return_routed_experts", true, experts).find(" --enable-return-routed-experts ") !=
        std::string::npos);
  CHECK(settings_of("", true, experts).find("routed-experts") == std::string::npos);
  const ModelDir model;
  std::ofstream(model.path() / "config.json") << R"({"model_type": "llama"})";
  CHECK(error_with({}, {{"model_name", model.path().string()}}).find("has no vocab_size; wanted it") !=
        std::string::npos);
  std::ofstream(model.path() / "config.json") << R"({"text_config": {"vocab_size": 9}})";
  CHECK(error_with({}, {{"model_name", model.path().string()}}) == "");
}

TEST_CASE("sglang_cfg and sglang_kwargs become SGLang's options") {
  const Json cfg = {{"dtype", "bfloat16"},
                    {"tp_size", 2},
                    {"disable_cuda_graph", true},
                    {"enable_mixed_chunk", false},
                    {"attention_backend", nullptr},
                    {"cuda_graph_bs_decode", {1, 2}},
                    {"sglang_server_config", {{"needs_offload", true}, {"cpu_weight_backup", true}}}};
  CHECK(joined(hexad::sglang::server_arguments(cfg, {}, true)) ==
        "--enable-memory-saver --enable-weights-cpu-backup --dtype bfloat16 --tp-size 2 --disable-cuda-graph "
        "--cuda-graph-bs-decode 1 2 ");
  CHECK(joined(hexad::sglang::server_arguments({{"dtype", "auto"}}, {{"dtype", "float32"}, {"map", {{"a", 1}}}},
                                               false)) == "--device cpu --dtype float32 --map {\"a\":1} ");
  CHECK_THROWS_WITH_AS(hexad::sglang::server_arguments(cfg, {{"load_format", "dummy"}}, true),
                       doctest::Contains("sglang_kwargs.load_format: got 'dummy'"), hexad::sdk::Error);
  CHECK_THROWS_WITH_AS(hexad::sglang::server_arguments(cfg, {{"api_key", "a"}}, true),
                       doctest::Contains("sglang_kwargs.api_key: the bridge sets it"), hexad::sdk::Error);
}

TEST_CASE("each key of sglang_cfg is told to SGLang, or changes how it is asked") {
  const std::map<std::string, Json> keys = {{"sglang_cfg/sglang_server_config/needs_offload", true},
                                            {"sglang_cfg/sglang_server_config/cpu_weight_backup", true},
                                            {"sglang_cfg/sglang_server_config/pause_generation_mode", "abort"},
                                            {"sglang_cfg/dtype", "other"},
                                            {"sglang_cfg/context_length", 7},
                                            {"sglang_cfg/max_running_requests", 7},
                                            {"sglang_cfg/random_seed", 7},
                                            {"sglang_cfg/skip_tokenizer_init", true},
                                            {"sglang_cfg/disable_cuda_graph", true},
                                            {"sglang_cfg/disable_radix_cache", true},
                                            {"sglang_cfg/disable_cuda_graph_padding", true},
                                            {"sglang_cfg/disable_piecewise_cuda_graph", true},
                                            {"sglang_cfg/cuda_graph_backend_decode", "other"},
                                            {"sglang_cfg/cuda_graph_backend_prefill", "other"},
                                            {"sglang_cfg/enable_nccl_nvls", true},
                                            {"sglang_cfg/disable_outlines_disk_cache", true},
                                            {"sglang_cfg/disable_custom_all_reduce", true},
                                            {"sglang_cfg/disable_overlap_schedule", true},
                                            {"sglang_cfg/enable_mixed_chunk", true},
                                            {"sglang_cfg/enable_dp_attention", true},
                                            {"sglang_cfg/enable_deepep_moe", true},
                                            {"sglang_cfg/enable_ep_moe", true},
                                            {"sglang_cfg/enable_torch_compile", true},
                                            {"sglang_cfg/torch_compile_max_bs", 7},
                                            {"sglang_cfg/cuda_graph_max_bs_decode", 7},
                                            {"sglang_cfg/cuda_graph_max_bs_prefill", 7},
                                            {"sglang_cfg/cuda_graph_bs_decode", {1, 2}},
                                            {"sglang_cfg/cuda_graph_bs_prefill", {1, 2}},
                                            {"sglang_cfg/torchao_config", "other"},
                                            {"sglang_cfg/enable_nan_detection", true},
                                            {"sglang_cfg/enable_p2p_check", true},
                                            {"sglang_cfg/triton_attention_reduce_in_fp32", true},
                                            {"sglang_cfg/triton_attention_num_kv_splits", 7},
                                            {"sglang_cfg/num_continuous_decode_steps", 7},
                                            {"sglang_cfg/allow_auto_truncate", true},
                                            {"sglang_cfg/attention_backend", "other"},
                                            {"sglang_cfg/enable_multimodal", true},
                                            {"sglang_cfg/sampling_backend", "other"},
                                            {"sglang_cfg/mem_fraction_static", 0.5},
                                            {"sglang_cfg/chunked_prefill_size", 7},
                                            {"sglang_cfg/max_prefill_tokens", 7},
                                            {"sglang_cfg/schedule_policy", "other"},
                                            {"sglang_cfg/schedule_conservativeness", 0.5},
                                            {"sglang_cfg/cpu_offload_gb", 7},
                                            {"sglang_cfg/kv_cache_dtype", "other"},
                                            {"sglang_cfg/tp_size", 7},
                                            {"sglang_cfg/dp_size", 7},
                                            {"sglang_cfg/pp_size", 7},
                                            {"sglang_cfg/ep_size", 7},
                                            {"sglang_cfg/log_level", "other"},
                                            {"sglang_cfg/log_level_http", "other"},
                                            {"sglang_cfg/log_requests", true},
                                            {"sglang_cfg/log_requests_level", 7},
                                            {"sglang_cfg/show_time_cost", true},
                                            {"sglang_cfg/enable_metrics", true},
                                            {"sglang_cfg/decode_log_interval", 7},
                                            {"sglang_cfg/skip_server_warmup", true},
                                            {"sglang_cfg/env_vars", {{"A", "b"}}},
                                            {"sglang_cfg/server_urls", {"http://a:1"}},
                                            {"sglang_cfg/api_key_env_var", "HOME"},
                                            {"sglang_cfg/num_servers", 7},
                                            {"sglang_cfg/server_command", {"other"}},
                                            {"sglang_cfg/server_log_dir", "other"},
                                            {"sglang_cfg/refit_dir", "other"},
                                            {"sglang_cfg/refit_address", "10.0.0.7"},
                                            {"sglang_cfg/max_attempts", 7},
                                            {"sglang_cfg/seed_requests", false},
                                            {"sglang_cfg/stream_interval", 7},
                                            {"sglang_cfg/startup_timeout_s", 0.5},
                                            {"sglang_cfg/control_timeout_s", 0.5},
                                            {"sglang_cfg/health_timeout_s", 0.5},
                                            {"sglang_cfg/stall_timeout_s", 0.5},
                                            {"sglang_cfg/lost_timeout_s", 0.5},
                                            {"sglang_kwargs", {{"other", 1}}}};
  for (const auto& [key, value] : keys) CHECK_MESSAGE(settings_of(key, value) != settings_of("", nullptr), key);
}

TEST_CASE("without a key of its own pausing follows NeMo-RL's keys of asynchronous runs") {
  const std::string server = "sglang_cfg/sglang_server_config";
  struct Row {
    bool in_flight, recompute;
    const char* mode;
  };
  for (const Row& row :
       {Row{false, false, "abort"}, {false, true, "abort"}, {true, false, "in_place"}, {true, true, "retract"}}) {
    CAPTURE(row.mode);
    Json keys = {{"in_flight_weight_updates", row.in_flight},
                 {"recompute_kv_cache_after_weight_updates", row.recompute}};
    CHECK(settings_of(server, keys) == settings_of(server + "/pause_generation_mode", row.mode));
    keys["pause_generation_mode"] = "retract";
    CHECK(settings_of(server, keys) == settings_of(server + "/pause_generation_mode", "retract"));
  }
}

TEST_CASE("an SGLang server on CUDA over several devices is refused, unless they are named") {
  using hexad::sglang::refuse_several_devices;
  for (const char* key : {"tp_size", "pp_size", "dp_size", "ep_size"}) {
    const Json two = {{key, 2}};
    CHECK_THROWS_WITH_AS(refuse_several_devices(two, {}, {}),
                         doctest::Contains((std::string("sglang_cfg.") + key + ": got 2, wanted 1").c_str()),
                         hexad::sdk::Error);
    CHECK_THROWS_WITH_AS(refuse_several_devices(Json::object(), two, {}),
                         doctest::Contains("name them all in sglang_cfg.env_vars.CUDA_VISIBLE_DEVICES"),
                         hexad::sdk::Error);
    CHECK_NOTHROW(refuse_several_devices(two, {}, {{"CUDA_VISIBLE_DEVICES", "0,1"}}));
  }
  CHECK(hexad::sglang::server_environment({}, {kDLCPU, 0}).at("SGLANG_USE_CPU_ENGINE") == "1");
  CHECK(hexad::sglang::server_environment({{"A", 1}}, {kDLCUDA, 0}).at("A") == "1");
}

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("an SGLang server is started with model and address, and a key that no command line shows") {
  const ModelDir dir;
  const std::string d = dir.path().string();
  // A server that writes its arguments and the file that --config names, and stays.
  const std::vector<std::string> command = {
      "/bin/sh", "-c",
      "while [ $# -gt 0 ]; do [ \"$1\" = --config ] && { cat \"$2\"; stat -c %a \"$2\"; } > " + d +
          "/config; echo \"$1\" >> " + d + "/arguments; shift; done; echo $$ > " + d + "/server; sleep 1000",
      "sglang"};
  Harness bridge(Harness::Spawn{command}, {{"tp_size", 2}, {"startup_timeout_s", 60}, {"num_servers", 1}},
                 {{"precision", "float32"}, {"sglang_kwargs", {{"random_seed", 3}}}});
  REQUIRE(soon([&] { return !read_file(dir.path() / "server").empty(); }));
  const std::string arguments = read_file(dir.path() / "arguments"), config = read_file(dir.path() / "config");
  CHECK(arguments.starts_with("--model-path\n" + bridge.model().path().string() + "\n--host\n127.0.0.1\n--port\n"));
  for (const char* part :
       {"--dtype\nfloat32", "--context-length\n4096", "--tp-size\n2", "--random-seed\n3", "--device\ncpu"})
    CHECK_MESSAGE(arguments.find(part) != std::string::npos, part, " in ", arguments);
  REQUIRE(config.size() == 10 + 64 + 2 + 4);
  CHECK(config.starts_with("api-key: \""));
  CHECK(config.ends_with("\"\n600\n"));
  const std::string key = config.substr(10, 64);
  CHECK(arguments.find(key) == std::string::npos);
  CHECK(!LogLines::all().has(key));
}

TEST_SUITE_END();
