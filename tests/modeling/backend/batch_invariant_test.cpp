// What stands in the way of batch-invariant training and generation.
#include "modeling/backend/settings/batch_invariant.hpp"

#include <doctest/doctest.h>

using namespace hexad::modeling;

namespace {

ModelConfig dense() {
  ModelConfig config;
  config.hidden_size = 256, config.intermediate_size = 512, config.vocab_size = 1000, config.head_dim = 64;
  return config;
}

const at::Device kGpu(at::kCUDA, 0);

std::string refused(ModelSettings settings, at::Device device, int64_t ranks) {
  settings.batch_invariant = true;
  try {
    check_batch_invariant(settings, device, ranks, "a_size x b_size");
  } catch (const hexad::sdk::Error& error) {
    CHECK(error.code() == HEXAD_UNIMPLEMENTED);
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("batch-invariant passes name what stands in their way") {
  CHECK(batch_invariant_obstacle(dense(), at::kBFloat16, kGpu) == "");
  CHECK(batch_invariant_obstacle(dense(), at::kBFloat16, at::kCPU) ==
        "this rank computes on cpu, wanted an NVIDIA GPU");
  CHECK(batch_invariant_obstacle(dense(), at::kHalf, kGpu) == "precision is Half, wanted bfloat16");
  ModelConfig config = dense();
  config.moe.emplace();
  CHECK(batch_invariant_obstacle(config, at::kBFloat16, kGpu) == "the model has experts, wanted a dense one");
  config = dense(), config.mla.emplace();
  CHECK(batch_invariant_obstacle(config, at::kBFloat16, kGpu) ==
        "the model has multi-head latent attention, wanted grouped-query attention");
  config = dense(), config.head_dim = 96;
  CHECK(batch_invariant_obstacle(config, at::kBFloat16, kGpu) == "the model's head_dim is 96, wanted 64 or 128");
  config = dense(), config.vocab_size = 997;
  CHECK(batch_invariant_obstacle(config, at::kBFloat16, kGpu) ==
        "the model's vocab_size is 997, wanted a multiple of 8");
}

TEST_CASE("a training backend refuses batch_invariant with what it does not go with, and nothing without it") {
  ModelSettings settings;
  settings.model = dense();
  CHECK(refused(settings, kGpu, 1) == "");
  CHECK(refused(settings, at::kCPU, 1) ==
        "policy.batch_invariant is true, but this rank computes on cpu, wanted an NVIDIA GPU; "
        "or set it to false");
  CHECK(
      refused(settings, kGpu, 4) ==
      "policy.batch_invariant is true, but a replica of the model is cut over 4 ranks (a_size x b_size), wanted 1; or "
      "set it to false");
  settings.fp8 = Fp8::hybrid;
  CHECK(refused(settings, kGpu, 1) ==
        "policy.batch_invariant is true, but fp8_cfg.enabled is true, wanted false; or set it to false");
  CHECK_NOTHROW(check_batch_invariant(settings, at::kCPU, 4, ""));
}
