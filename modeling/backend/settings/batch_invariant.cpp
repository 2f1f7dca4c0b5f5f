#include "modeling/backend/settings/batch_invariant.hpp"

#include <ATen/Context.h>

namespace hexad::modeling {

std::string batch_invariant_obstacle(const ModelConfig& config, at::ScalarType dtype, at::Device device) {
  if (!device.is_cuda()) return "this rank computes on " + device.str() + ", wanted an NVIDIA GPU";
  if (dtype != at::kBFloat16) return std::string("precision is ") + at::toString(dtype) + ", wanted bfloat16";
  if (config.moe) return "the model has experts, wanted a dense one";
  if (config.mla) return "the model has multi-head latent attention, wanted grouped-query attention";
  if (config.head_dim != 64 && config.head_dim != 128)
    return "the model's head_dim is " + std::to_string(config.head_dim) + ", wanted 64 or 128";
  const std::pair<const char*, int64_t> widths[] = {{"hidden_size", config.hidden_size},
                                                    {"intermediate_size", config.intermediate_size},
                                                    {"vocab_size", config.vocab_size}};
  for (const auto& [name, width] : widths)
    if (width % 8 != 0)
      return std::string("the model's ") + name + " is " + std::to_string(width) + ", wanted a multiple of 8";
  return {};
}

void check_batch_invariant(const ModelSettings& settings, at::Device device, int64_t ranks, const char* sizes) {
  if (!settings.batch_invariant) return;
  const auto refuse = [](const std::string& reason) {
    sdk::fail(HEXAD_UNIMPLEMENTED, "policy.batch_invariant is true, but %s; or set it to false", reason.c_str());
  };
  if (const std::string found = batch_invariant_obstacle(settings.model, settings.compute_dtype, device);
      !found.empty())
    refuse(found);
  if (settings.fp8 != Fp8::off) refuse("fp8_cfg.enabled is true, wanted false");
  if (ranks > 1)
    refuse("a replica of the model is cut over " + std::to_string(ranks) + " ranks (" + sizes + "), wanted 1");
  if (at::globalContext().deterministicAlgorithms())
    refuse("policy.deterministic is true, whose backward pass of attention is another, wanted false");
}

}  // namespace hexad::modeling
