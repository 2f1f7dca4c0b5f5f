#include "modeling/backend/token_outputs.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "modeling/op/next_token.hpp"

namespace hexad::modeling {
namespace {

template <typename Function>
LogprobResult each(const LogprobResult& values, Function&& function) {
  const auto one = [&](const at::Tensor& x) { return x.defined() ? function(x) : x; };
  return {one(values.logprobs), one(values.entropy), one(values.unfiltered_logprobs), values.sequence_scores};
}

}  // namespace

LogprobResult to_tokens(const MicroBatch& batch, const LogprobResult& rows, const Group& context) {
  const at::NoGradGuard no_grad;
  return each(rows, [&](const at::Tensor& values) {
    at::Tensor all = values.detach();
    if (batch.token_index.defined()) {
      all = at::zeros({batch.tokens}, all.options()).index_copy_(0, batch.token_index, all);
      context.all_reduce(all).wait();
    }
    return at_predicted_token(all);
  });
}

LogprobResult to_rows(const MicroBatch& batch, const LogprobResult& tokens) {
  return each(tokens, [&](const at::Tensor& values) {
    const at::Tensor predicting = values.roll(-1, 0);
    return batch.token_index.defined() ? predicting.index_select(0, batch.token_index) : predicting;
  });
}

}  // namespace hexad::modeling
