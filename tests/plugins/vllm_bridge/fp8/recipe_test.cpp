// What vllm_cfg says of FP8: a server's arguments and environment, which weights are quantised, and refusals. Against
// what NeMo-RL's own code makes of its recipes (data/nemo_rl_fp8.json says how that was recorded; no card ran it).
#include <set>

#include "lib/model/family/weight_table.hpp"
#include "plugins/vllm_bridge/arguments.hpp"
#include "plugins/vllm_bridge/settings.hpp"
#include "tests/plugins/vllm_bridge/fp8/support.hpp"

using namespace vllm_test;

namespace {

hexad::vllm::Settings settings_of(const Json& model, const Json& cfg, const Json& kwargs = Json::object(),
                                  DLDevice device = {kDLCPU, 0}, const Json& section = Json::object()) {
  const Fp8Model dir(model);
  hexad::plugin::CallContext context;
  context.device = device;
  hexad::plugin::Call call(context, "test");
  Json all = section;
  all["model_name"] = dir.path(), all["vllm_cfg"] = cfg, all["vllm_kwargs"] = kwargs;
  const hexad::plugin::PluginConfig config("policy.generation", all);
  const hexad::sdk::Call service(logging_host(), call.handle());
  return hexad::vllm::read_settings(service, hexad::sdk::Config(service, config.handle()));
}

std::string refusal(const Json& cfg, const Json& kwargs = Json::object(), const Json& model = tiny_llama(),
                    DLDevice device = {kDLCPU, 0}, const Json& section = Json::object()) {
  try {
    settings_of(model, cfg, kwargs, device, section);
  } catch (const hexad::sdk::Error& error) {
    return error.what();
  }
  return "";
}

// The word behind an option.
std::string value_of(const std::vector<std::string>& arguments, const std::string& option) {
  const auto at = std::ranges::find(arguments, option);
  return at == arguments.end() || at + 1 == arguments.end() ? "" : *(at + 1);
}

std::set<std::string> texts(const Json& list) {
  std::set<std::string> result;
  for (const Json& text : list) result.insert(text.get<std::string>());
  return result;
}

// Modules, with the experts of a layer as one: NeMo-RL's list has each of their matrices.
std::set<std::string> modules(const Json& list) {
  std::set<std::string> result;
  for (const std::string& name : texts(list)) {
    const size_t experts = name.find(".experts.");
    if (!name.ends_with("norm")) result.insert(experts == std::string::npos ? name : name.substr(0, experts + 8));
  }
  return result;
}

// What is left out here and not there: routers, whose form depends on vLLM's version, and the head of MX.
bool is_our_own(const std::string& module) { return module.ends_with(".mlp.gate") || module == "lm_head"; }

}  // namespace

TEST_CASE("a server is started with what NeMo-RL's recipes start theirs with") {
  const Json golden = nemo_rl_golden();
  for (const Json& recipe : golden.at("cases")) {
    CAPTURE(recipe.at("recipe").dump());
    const hexad::vllm::Settings s =
        settings_of(recipe.at("model_config"), recipe.at("vllm_cfg"), recipe.at("vllm_kwargs"));
    const std::vector<std::string>& arguments = s.common.spawn.arguments;
    const Json& wanted = recipe.at("arguments");
    CHECK(value_of(arguments, "--quantization") == wanted.at("quantization"));
    CHECK(value_of(arguments, "--dtype") == wanted.at("dtype"));
    const std::string cache = value_of(arguments, "--kv-cache-dtype");
    CHECK((cache.empty() ? "auto" : cache) == wanted.at("kv_cache_dtype"));
    Json got = Json::parse(value_of(arguments, "--hf-overrides")).at("quantization_config");
    Json config = wanted.at("hf_overrides").at("quantization_config");
    std::set<std::string> ignored = modules(got.value("ignored_layers", Json::array()));
    CHECK(got.value("ignore", Json::array()) == got.value("ignored_layers", Json::array()));
    std::erase_if(ignored, is_our_own);
    CHECK(ignored == modules(config.value("ignored_layers", Json::array())));
    for (Json* each : {&got, &config}) each->erase("ignored_layers"), each->erase("ignore");
    CHECK(Json(got).dump() == Json(config).dump());
    // NeMo-RL leaves E8M0 to vLLM where it does not ask for DeepGEMM: vLLM then rounds scales that it was sent.
    const bool is_mx = config.value("quant_algo", "") == "MXFP8";
    for (const auto& [variable, unset] :
         {std::pair{"VLLM_USE_DEEP_GEMM", ""}, std::pair{"VLLM_USE_DEEP_GEMM_E8M0", is_mx ? "" : "0"}}) {
      const auto& environment = s.common.spawn.environment;
      const std::string set = environment.contains(variable) ? environment.at(variable) : "";
      CHECK(set == recipe.at("environment").value(variable, unset));
    }
    for (const auto& [name, value] : recipe.at("vllm_kwargs").items()) {
      std::string option = "--" + name;
      std::ranges::replace(option, '_', '-');
      CHECK(value_of(arguments, option) == value.dump());
    }
    if (!recipe.contains("quantised")) continue;
    REQUIRE(s.fp8);
    CHECK(s.fp8->layers.weights == texts(recipe.at("quantised")));
  }
}

TEST_CASE("routers, embeddings and heads are never quantised, and routers are left out by name") {
  Json model = tiny_llama();
  model.update({{"model_type", "qwen3_moe"},
                {"num_experts", 4},
                {"num_experts_per_tok", 2},
                {"moe_intermediate_size", 128},
                {"decoder_sparse_step", 1}});
  const auto s = settings_of(model, {{"precision", "fp8"}});
  REQUIRE(s.fp8);
  const auto& layers = s.fp8->layers;
  CHECK(layers.weights.contains("model.layers.1.mlp.experts.3.down_proj.weight"));
  CHECK(!layers.weights.contains("model.layers.1.mlp.gate.weight"));
  CHECK(!layers.weights.contains("lm_head.weight"));
  CHECK(layers.ignored == std::vector<std::string>{"model.layers.0.mlp.gate", "model.layers.1.mlp.gate"});
  const auto mx = settings_of(
      model, {{"precision", "fp8"}, {"is_mx", true}, {"quantization_ignored_layer_kws", {"experts.0.up_proj"}}});
  CHECK(mx.fp8->layers.ignored.back() == "lm_head");
  CHECK(!mx.fp8->layers.weights.contains("model.layers.1.mlp.experts.3.down_proj.weight"));  // all or none of them
  CHECK(mx.fp8->layers.weights.contains("model.layers.1.self_attn.o_proj.weight"));
}

TEST_CASE("a user's hf_overrides stay beside the quantization, and scales of powers reach DeepGEMM") {
  const auto s = settings_of(tiny_llama(),
                             {{"precision", "fp8"},
                              {"use_deep_gemm", true},
                              {"pow2_weight_scaling_factors", true},
                              {"pow2_activation_scaling_factors", true},
                              {"env_vars", {{"VLLM_USE_DEEP_GEMM", "0"}}}},
                             {{"hf_overrides", {{"max_position_embeddings", 64}}}});
  const Json overrides = Json::parse(value_of(s.common.spawn.arguments, "--hf-overrides"));
  CHECK(overrides.at("max_position_embeddings") == 64);
  CHECK(overrides.at("quantization_config").at("quant_method") == "fp8");
  CHECK(std::ranges::count(s.common.spawn.arguments, std::string("--hf-overrides")) == 1);
  CHECK(s.fp8->powers);
  CHECK(s.common.spawn.environment.at("VLLM_USE_DEEP_GEMM_E8M0") == "1");
  CHECK(s.common.spawn.environment.at("VLLM_USE_DEEP_GEMM") == "0");  // env_vars win
}

TEST_CASE("what no server does in FP8 is refused by its key") {
  const auto with = [](const char* key, const Json& value) { return Json{{"precision", "fp8"}, {key, value}}; };
  CHECK(refusal(with("kv_cache_dtype", "fp8")) == "");
  CHECK(refusal({{"is_mx", true}}) ==
        "vllm_cfg.is_mx: got true, which is a form of FP8; wanted vllm_cfg.precision: fp8");
  CHECK(refusal({{"precision", "fp8"}, {"is_mx", true}, {"pow2_weight_scaling_factors", false}})
            .starts_with("vllm_cfg.pow2_weight_scaling_factors: got false, and scales of MX"));
  CHECK(refusal(with("pow2_activation_scaling_factors", true))
            .starts_with("vllm_cfg.pow2_activation_scaling_factors: got true; only DeepGEMM rounds them"));
  CHECK(refusal(with("kv_cache_dtype", "fp8_e5m2")).starts_with("vllm_cfg.kv_cache_dtype: got fp8_e5m2"));
  CHECK(refusal({{"precision", "fp8"}, {"num_first_layers_in_bf16", 2}, {"num_last_layers_in_bf16", 1}})
            .ends_with("got 2 and 1, and the model has 2 layers"));
  CHECK(refusal(with("quantization_ignored_layer_kws", {"q_proj"}))
            .starts_with("vllm_cfg.quantization_ignored_layer_kws: leaves out q_proj of model.layers.0.self_attn., and "
                         "not k_proj, v_proj"));
  CHECK(refusal({{"precision", "fp8"}}, {{"quantization", "fp8"}})
            .starts_with("vllm_kwargs: got a quantization of its own (quantization)"));
  CHECK(refusal({{"precision", "fp8"}}, {{"hf_overrides", {{"quantization_config", Json::object()}}}})
            .starts_with("vllm_kwargs: got a quantization of its own (hf_overrides)"));
  Json narrow = tiny_llama(), unknown = tiny_llama();
  narrow["intermediate_size"] = 96, unknown["model_type"] = "nobody";
  CHECK(
      refusal({{"precision", "fp8"}}, Json::object(), narrow).find("gate_proj has 96 rows, wanted a multiple of 128") !=
      std::string::npos);
  CHECK(refusal({{"precision", "fp8"}}, Json::object(), unknown)
            .starts_with("vllm_cfg.precision: got fp8, and which weights of the model are to be quantised cannot be "
                         "told: "));
}

TEST_CASE("ranks of a server are told to it, and CUDA IPC has no way to several") {
  const auto s = settings_of(tiny_llama(), {{"data_parallel_size", 2}, {"expert_parallel_size", 2}});
  CHECK(value_of(s.common.spawn.arguments, "--data-parallel-size") == "2");
  CHECK(std::ranges::count(s.common.spawn.arguments, std::string("--enable-expert-parallel")) == 1);
  const Json devices = {{"CUDA_VISIBLE_DEVICES", "0,1"}};
  CHECK(refusal({{"data_parallel_size", 2}, {"env_vars", devices}}, Json::object(), tiny_llama(), {kDLCUDA, 0},
                {{"refit_transport", "ipc"}}) ==
        "refit_transport: got 'ipc', and vllm_cfg.data_parallel_size is 2: CUDA IPC reaches this rank's own GPU alone. "
        "Wanted nccl or disk");
  CHECK(refusal({{"data_parallel_size", 2}}, Json::object(), tiny_llama(), {kDLCUDA, 0})
            .starts_with("vllm_cfg.data_parallel_size: got 2, wanted 1"));
}

TEST_CASE("speculation is passed through, and none of NeMo-RL's is none") {
  const Json ngram = {{"method", "ngram"}, {"num_speculative_tokens", 3}, {"prompt_lookup_max", 4}};
  const auto s = settings_of(tiny_llama(), Json::object(), {{"speculative_config", ngram}});
  CHECK(Json::parse(value_of(s.common.spawn.arguments, "--speculative-config")) == ngram);
  const auto none =
      settings_of(tiny_llama(), Json::object(), {{"speculative_config", {{"num_speculative_tokens", 0}}}});
  CHECK(value_of(none.common.spawn.arguments, "--speculative-config") == "");
}
