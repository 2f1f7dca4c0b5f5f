// What the generator reads from its configuration.
#pragma once
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <hexad/plugin.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace hexad::native {

struct Settings {
  std::string model_name;             // a Hugging Face directory
  at::ScalarType dtype = at::kFloat;  // native_cfg.precision, or policy.generation.precision
  bool fp8 = false;                   // native_cfg.precision fp8: matrices of layers in FP8, all else in bfloat16
  at::Device device = at::kCPU;
  int64_t max_length = 0;  // max_total_sequence_length: prompt + response; 0: the model's own

  // native_cfg
  int64_t block_size = 16;             // kv_block_size: positions of a block of the KV cache
  bool fp8_cache = false;              // kv_cache_dtype fp8: keys and values in e4m3
  std::optional<double> kv_cache_gib;  // kv_cache_gb; absent: what the run can use, within a share of the free memory
  int64_t max_sequences = 256;         // max_num_seqs: that run at once
  int64_t max_tokens = 2048;           // max_num_batched_tokens: rows of a forward pass
  bool chunked_prefill = true;         // enable_chunked_prefill
  bool share_prompts = true;           // enable_prefix_sharing
  bool keep_routes = false;            // return_routed_experts, beside native_cfg
  bool deterministic = false;          // deterministic, or HEXAD_CALL_DETERMINISTIC
  bool batch_invariant = false;        // batch_invariant, beside native_cfg: policy.batch_invariant
  bool weights_follow = false;         // weights_follow, beside native_cfg: an update comes before the first request
  int64_t tensor_parallel_size = 1;    // neighbouring ranks that run one copy of the model together

  at::ScalarType cache_dtype() const { return fp8_cache ? at::kFloat8_e4m3fn : dtype; }  // of keys and values
};

// Throws sdk::Error (invalid argument) naming the key, what it holds and what it may hold.
Settings read_settings(const sdk::Call& call, const sdk::Config& config);

}  // namespace hexad::native
