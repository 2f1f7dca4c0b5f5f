// Configurations and model directories that a generator refuses.
#include <cmath>

#include "tests/plugins/native/support/harness.hpp"
#include "tests/plugins/native/support/tiny_model.hpp"

using namespace native_test;

namespace {

std::string refused(const Json& section, hexad_code code = HEXAD_INVALID_ARGUMENT) {
  return refusal(code, [&] { Harness generator(section); });
}

}  // namespace

TEST_CASE("settings are refused with the key, what it holds and what it may hold") {
  const TinyModel model("llama");
  const std::string path = model.path();
  CHECK(refused({{"precision", "float32"}}) == "model_name is missing: wanted a Hugging Face directory");
  CHECK(refused({{"model_name", path}, {"precision", "fp8"}}) ==
        "precision: got 'fp8', wanted float32, bfloat16 or float16");
  CHECK(refused({{"model_name", path}, {"native_cfg", {{"kv_block_size", 0}}}}) ==
        "native_cfg.kv_block_size: got 0, wanted at least 1");
  CHECK(refused({{"model_name", path}, {"native_cfg", {{"max_num_seqs", 0}}}}) ==
        "native_cfg.max_num_seqs: got 0, wanted at least 1");
  CHECK(refused({{"model_name", path}, {"native_cfg", {{"max_num_batched_tokens", -3}}}}) ==
        "native_cfg.max_num_batched_tokens: got -3, wanted at least 1");
  CHECK(refused({{"model_name", path}, {"native_cfg", {{"kv_cache_gb", -1.0}}}}) ==
        "native_cfg.kv_cache_gb: got -1, wanted more than 0");
  CHECK(refused({{"model_name", path}, {"native_cfg", {{"max_num_seqs", int64_t{1} << 40}}}}) ==
        "native_cfg.max_num_seqs: got 1099511627776, wanted at most 1073741824");
  const std::string huge = refused({{"model_name", path}, {"native_cfg", {{"kv_cache_gb", 1e9}}}});
  CHECK_MESSAGE(huge.starts_with("native_cfg.kv_cache_gb: got 1e+09, this worker's device has "), huge);
}

TEST_CASE("a KV cache of less than one block is refused, one of less than a sequence is not") {
  const TinyModel model("llama");
  // A block: keys and values of 3 layers, 2 heads of 10, 16 tokens in fp32.
  const double block = 2 * 3 * 2 * 10 * 16 * 4 / std::pow(1024.0, 3);
  CHECK(refused({{"model_name", model.path()}, {"native_cfg", {{"kv_cache_gb", 0.9 * block}}}},
                HEXAD_RESOURCE_EXHAUSTED) ==
        "the KV cache gets 6.437e-06 GiB, and one block of 16 tokens needs 7.153e-06: raise native_cfg.kv_cache_gb");
  Harness small({{"model_name", model.path()}, {"native_cfg", {{"kv_cache_gb", 1.5 * block}}}});
  hexad_generator_info info{};
  small->describe(small.service(), info);
  CHECK(info.kv_capacity == 16);
  CHECK(info.max_model_len == 512);
  CHECK(small.run({{.id = 1, .prompt = {3, 4}, .max_new_tokens = 15}}).at(1).tokens.size() == 15);
}

TEST_CASE("without kv_cache_gb the cache holds what the run can use") {
  const TinyModel model("llama");
  Harness generator(
      {{"model_name", model.path()}, {"max_total_sequence_length", 50}, {"native_cfg", {{"max_num_seqs", 3}}}});
  hexad_generator_info info{};
  generator->describe(generator.service(), info);
  CHECK(info.kv_capacity == 3 * 64);
  CHECK(info.max_sequences == 3);
  CHECK(info.weight_form == HEXAD_FORM_FULL);
  CHECK(info.caps == (HEXAD_GEN_STREAMING | HEXAD_GEN_UPDATE_INFLIGHT | HEXAD_GEN_SLEEP | HEXAD_GEN_ROUTED_EXPERTS));
}

TEST_CASE("families that the executors cannot run are refused by name") {
  const TinyModel model("llama", false);
  Json config = tiny_config("deepseek_v3");
  config.update({{"q_lora_rank", nullptr}, {"sliding_window", nullptr}});
  hexad::modeling::write_file(model.path() + "/config.json", config.dump());
  CHECK(refused({{"model_name", model.path()}}, HEXAD_UNIMPLEMENTED) ==
        model.path() +
            ": model_type 'deepseek_v3' has multi-head latent attention, which the native generator cannot run yet; "
            "wanted another model, or another generator (policy.generation.backend)");
}

TEST_CASE("weights that are missing, misshapen or not finite are refused by name") {
  const TinyModel model("qwen2");
  const Json section = {{"model_name", model.path()}};
  Weights broken = model.weights;
  broken.erase("model.norm.weight");
  model.save(broken);
  CHECK(refused(section).find("1 of 39 weights are missing: model.norm.weight") != std::string::npos);
  broken["model.norm.weight"] = at::ones({35});
  model.save(broken);
  CHECK(refused(section).find("'model.norm.weight' has shape [35], the config wants [36]") != std::string::npos);
  broken["model.norm.weight"] = at::full({36}, NAN);
  model.save(broken);
  CHECK(refused(section).find("'model.norm.weight' holds 36 values that are not finite; the first is nan") !=
        std::string::npos);
}

TEST_CASE("batch_invariant is refused where the kernels for it are not") {
  const TinyModel model("llama");
  const std::string got = refused({{"model_name", model.path()}, {"batch_invariant", true}}, HEXAD_UNIMPLEMENTED);
  CHECK(got ==
        "policy.batch_invariant is true, but this rank computes on cpu, wanted an NVIDIA GPU; "
        "or set it to false");
}
