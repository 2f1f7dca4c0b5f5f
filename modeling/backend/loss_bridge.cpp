#include "modeling/backend/loss_bridge.hpp"

#include <ATen/Functions.h>

#include <cstring>
#include <deque>
#include <vector>

#include "modeling/backend/tensor_view.hpp"

namespace hexad::modeling {
namespace {

size_t output_index(const char* name) {
  for (size_t i = 0; i < kOutputNames.size(); ++i)
    if (!std::strcmp(name, kOutputNames[i])) return i;
  sdk::fail(HEXAD_UNIMPLEMENTED, "the output '%s' is not available: wanted logprobs, entropy or logprobs_unfiltered",
            name);
}

template <typename Result>
auto& member(Result& result, const char* name) {
  const std::array members = {&result.logprobs, &result.entropy, &result.unfiltered_logprobs};
  return *members[output_index(name)];
}

}  // namespace

void request_output(const char* name, LogprobOptions& options) {
  const size_t index = output_index(name);
  options.entropy |= index == 1;
  options.unfiltered_too |= index == 2;
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
    named.push_back({name, &views.emplace_back(to_dl(output)), nullptr, HEXAD_AXIS_TOKEN, 0});
    at::Tensor& grad = member(result, name) = at::zeros_like(output);
    grads.push_back(&views.emplace_back(to_dl(grad)));
  }
  sdk::compute_loss(call, args, index, named, grads);
  return result;
}

}  // namespace hexad::modeling
