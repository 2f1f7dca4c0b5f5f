#include "plugins/native/settings.hpp"

namespace hexad::native {
namespace {

void read_precision(const sdk::Config& config, Settings& s) {
  const std::string whole = config.get("precision", "float32"), own = config.get("native_cfg.precision", "");
  const std::string& name = own.empty() ? whole : own;
  s.fp8 = own == "fp8";
  if (name == "float32")
    s.dtype = at::kFloat;
  else if (name == "bfloat16" || s.fp8)
    s.dtype = at::kBFloat16;
  else if (name == "float16")
    s.dtype = at::kHalf;
  else
    sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got '%s', wanted float32, bfloat16%s",
              own.empty() ? "precision" : "native_cfg.precision", name.c_str(),
              own.empty() ? " or float16" : ", float16 or fp8");
}

// As vLLM names it, whose fp8 is e4m3 too.
bool read_fp8_cache(const sdk::Config& config) {
  const std::string name = config.get("native_cfg.kv_cache_dtype", "auto");
  if (name != "auto" && name != "fp8" && name != "fp8_e4m3") {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "native_cfg.kv_cache_dtype: got '%s', wanted auto, fp8 or fp8_e4m3",
              name.c_str());
  }
  return name != "auto";
}

// Counts stay small enough for their products to fit.
constexpr int64_t kMost = int64_t{1} << 30;

int64_t at_least(const sdk::Config& config, const char* key, int64_t otherwise, int64_t minimum) {
  const int64_t value = config.get<int64_t>(key, otherwise);
  if (value < minimum) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got %lld, wanted at least %lld", key, static_cast<long long>(value),
              static_cast<long long>(minimum));
  }
  if (value > kMost) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "%s: got %lld, wanted at most %lld", key, static_cast<long long>(value),
              static_cast<long long>(kMost));
  }
  return value;
}

}  // namespace

Settings read_settings(const sdk::Call& call, const sdk::Config& config) {
  Settings s;
  s.model_name = config.get("model_name", "");
  if (s.model_name.empty()) sdk::fail(HEXAD_INVALID_ARGUMENT, "model_name is missing: wanted a Hugging Face directory");
  read_precision(config, s);
  const DLDevice device = call.device();
  if (device.device_type == kDLCUDA) s.device = at::Device(at::kCUDA, static_cast<int8_t>(device.device_id));
  s.max_length = at_least(config, "max_total_sequence_length", s.max_length, 0);
  s.block_size = at_least(config, "native_cfg.kv_block_size", s.block_size, 1);
  s.fp8_cache = read_fp8_cache(config);
  s.kv_cache_gib = config.find<double>("native_cfg.kv_cache_gb");
  if (s.kv_cache_gib && !(*s.kv_cache_gib > 0)) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "native_cfg.kv_cache_gb: got %g, wanted more than 0", *s.kv_cache_gib);
  }
  s.max_sequences = at_least(config, "native_cfg.max_num_seqs", s.max_sequences, 1);
  s.max_tokens = at_least(config, "native_cfg.max_num_batched_tokens", s.max_tokens, 1);
  s.chunked_prefill = config.get("native_cfg.enable_chunked_prefill", s.chunked_prefill);
  s.share_prompts = config.get("native_cfg.enable_prefix_sharing", s.share_prompts);
  s.keep_routes = config.get("return_routed_experts", s.keep_routes);
  s.deterministic = config.get("native_cfg.deterministic", s.deterministic) || call.deterministic();
  s.batch_invariant = config.get("batch_invariant", s.batch_invariant);
  s.weights_follow = config.get("weights_follow", s.weights_follow);
  s.tensor_parallel_size = at_least(config, "native_cfg.tensor_parallel_size", s.tensor_parallel_size, 1);
  return s;
}

}  // namespace hexad::native
