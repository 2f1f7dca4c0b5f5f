// clipped_pg: the policy-gradient loss of GRPO and its relatives (PPO, DAPO, GSPO, CISPO, REINFORCE, dual clip,
// truncated importance sampling, KL to a reference), as NeMo-RL's ClippedPGLossFn defines it, over packed sequences in
// host memory or, built with CUDA, where the backend has them.
#include <hexad/plugin.hpp>

#include "batch.hpp"
#include "device_batch.hpp"
#include "metrics.hpp"
#include "options.hpp"

namespace clipped_pg {

using namespace hexad::sdk;

class ClippedPg {
 public:
  static constexpr hexad_tensor_spec inputs[] = {
      token_f32("logprobs", HEXAD_SPEC_DIFFERENTIABLE),
      token_f32("logprobs_unfiltered", HEXAD_SPEC_DIFFERENTIABLE | HEXAD_SPEC_OPTIONAL),
      token_f32("prev_logprobs"),
      token_f32("generation_logprobs"),
      token_f32("reference_policy_logprobs"),
      token_f32("advantages"),
      token_f32("token_mask"),
      sample_f32("sample_mask"),
      sample_f32("rewards"),
      sample_f32("global_positive_tokens"),
      token_f32("held_logprobs", HEXAD_SPEC_OPTIONAL),
      token_f32("held_logprobs_unfiltered", HEXAD_SPEC_OPTIONAL),
  };
  static_assert(std::size(inputs) == kInputCount);
  static constexpr auto& metrics = kMetricSpecs;
  static constexpr uint64_t caps = kMemory;

  ClippedPg(const Call&, const Config& config) : options_(read_options(config)) {}

  // Drops the inputs and metrics that this configuration has no use for.
  void plan(const Call&, hexad_loss_plan& plan) const {
    const auto drop = [](uint64_t& bits, size_t bit) { bits &= ~(uint64_t{1} << bit); };
    if (options_.kl_penalty == 0) drop(plan.used_inputs, kReference), drop(plan.used_inputs, kUnfiltered);
    if (options_.force_on_policy) drop(plan.used_inputs, kPrevious);
    if (options_.positive_nll_weight == 0) drop(plan.used_inputs, kRewards), drop(plan.used_inputs, kPositiveTokens);
    const bool kl_stops = options_.kl_penalty != 0 && !options_.on_policy_kl;  // a gradient
    if (!kl_stops && !options_.cispo && !options_.force_on_policy) drop(plan.used_inputs, kHeld);
    if (!kl_stops) drop(plan.used_inputs, kHeldUnfiltered);
    if (options_.truncation == Truncation::none) drop(plan.used_metrics, kIsOobRatio);
  }

  void compute(const Call& call, const LossBatch& batch, LossOut& out) const;

 private:
  Options options_;
};

void ClippedPg::compute(const Call& call, const LossBatch& batch, LossOut& out) const {
  Batch arrays;
  for (size_t i = 0; i < kInputCount; ++i) arrays.inputs[i] = batch.f32(i).data();
  arrays.grad = out.grad(0).data(), arrays.grad_unfiltered = out.grad(1).data();
  arrays.cu_seqlens = batch.cu_seqlens().data();
  arrays.sequences = batch.num_sequences();
  arrays.per_token = 1 / denominator(batch.global_valid_tokens());
  arrays.per_sequence = 1 / denominator(batch.global_valid_sequences());
  double *loss = HEXAD_F64(out.raw().loss), *of_metrics = HEXAD_F64(out.raw().metrics);
  const DLDevice device = batch.tensor(kLogprobs)->device;
  if (device.device_type == kDLCUDA) {
    compute_on_device(call, device, options_, arrays, loss, of_metrics);
  } else {
    compute_on_host(options_, arrays, loss, of_metrics);
  }
}

}  // namespace clipped_pg

HEXAD_CPP_LOSS(clipped_pg::ClippedPg, "clipped_pg", "1.0.0", "Apache-2.0")
