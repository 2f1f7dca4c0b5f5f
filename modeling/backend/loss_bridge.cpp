#include "modeling/backend/loss_bridge.hpp"

#include <ATen/Functions.h>

#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "modeling/backend/tensor_view.hpp"

namespace hexad::modeling {
namespace {

enum class Output : size_t { logprobs, entropy, unfiltered_logprobs, sequence_scores };

// By Output. A reward head makes the last one, every other model the rest.
constexpr std::array<const char*, 4> kOutputNames = {"logprobs", "entropy", "logprobs_unfiltered", "sequence_scores"};

Output output_of(const char* name) {
  for (size_t i = 0; i < kOutputNames.size(); ++i)
    if (!std::strcmp(name, kOutputNames[i])) return static_cast<Output>(i);
  sdk::fail(
      HEXAD_UNIMPLEMENTED,
      "the output '%s' is not available: wanted logprobs, entropy or logprobs_unfiltered, or sequence_scores of a "
      "reward model",
      name);
}

int32_t axis_of(const char* name) {
  return output_of(name) == Output::sequence_scores ? HEXAD_AXIS_SAMPLE : HEXAD_AXIS_TOKEN;
}

template <typename Result>
auto& member(Result& result, const char* name) {
  switch (output_of(name)) {
    case Output::entropy: return result.entropy;
    case Output::unfiltered_logprobs: return result.unfiltered_logprobs;
    case Output::sequence_scores: return result.sequence_scores;
    case Output::logprobs: break;
  }
  return result.logprobs;
}

}  // namespace

std::span<const char* const> output_names(bool reward_head) {
  const std::span<const char* const> all = kOutputNames;
  return reward_head ? all.last(1) : all.first(all.size() - 1);
}

void request_output(const char* name, LogprobOptions& options) {
  const Output output = output_of(name);
  options.entropy |= output == Output::entropy;
  options.unfiltered_too |= output == Output::unfiltered_logprobs;
}

const at::Tensor& output_named(const LogprobResult& result, const char* name) { return member(result, name); }

LogprobResult loss_gradient(const sdk::Call& call, const hexad_train_args& args, int64_t index,
                            const LogprobResult& outputs) {
  LogprobResult result;
  std::deque<at::Tensor> kept;  // alive during the call
  std::deque<DLTensor> views;
  std::vector<hexad_named_tensor> named;
  std::vector<DLTensor*> grads;
  for (int64_t k = 0; k < args.num_outputs; ++k) {
    const char* name = args.outputs[k];
    const at::Tensor& output = kept.emplace_back(output_named(outputs, name).detach().contiguous());
    named.push_back({name, &views.emplace_back(to_dl(output)), nullptr, axis_of(name), 0});
    at::Tensor& grad = member(result, name) = at::zeros_like(output);
    grads.push_back(&views.emplace_back(to_dl(grad)));
  }
  sdk::compute_loss(call, args, index, named, grads);
  return result;
}

}  // namespace hexad::modeling
