// What a vLLM of a version can do: the one place that knows. What can be asked of the server itself is asked
// (fleet/health.cpp).
#pragma once
#include <string>
#include <string_view>

namespace hexad::vllm {

struct Capabilities {
  std::string version;      // as the server says it; "" if it does not
  bool cache_salt = false;  // requests may keep their cached prefixes apart
  // Weights without a disk (/init_weight_transfer_engine and what follows), in the form that this bridge speaks.
  bool weight_transfer = false;
  bool reloads_fp8 = false;      // takes new weights in FP8 in the form of a checkpoint, layer by layer
  bool ipc_packed_at_init = false, nccl_packed_at_init = false;  // `packed` is said once, and not with each update
  bool nccl_id_at_init = false;                                  // the communicator's id needs no store
};

// "0.24.0", "0.24.0+cpu", "v0.30.1rc1"; an unreadable version is taken for the oldest.
Capabilities capabilities_of(std::string_view version);

// The oldest vLLM that this bridge is for: its /v1/completions returns token ids.
inline constexpr std::string_view kOldestVersion = "0.10.2";
bool too_old(std::string_view version);

}  // namespace hexad::vllm
