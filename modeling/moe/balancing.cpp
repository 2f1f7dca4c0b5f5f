#include "modeling/moe/balancing.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "modeling/op/function.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AttachLoss : Function<AttachLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& activation, const at::Tensor& loss, double scale) {
    ctx->saved_data["scale"] = scale;
    ctx->save_for_backward({loss});
    return activation.view_as(activation);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const double scale = ctx->saved_data["scale"].toDouble();
    return {grads[0], at::full_like(ctx->get_saved_variables()[0], scale), at::Tensor()};
  }
};

}  // namespace

BalancingScores balancing_scores(const at::Tensor& logits, int64_t topk, ScoreFunction score,
                                 const at::Tensor& padding) {
  at::Tensor scores = normalized_scores(logits, score);
  const at::Tensor best = std::get<1>(scores.detach().topk(topk, 1));
  at::Tensor map = at::zeros_like(scores, at::kBool).scatter(1, best, true);
  if (padding.defined()) {
    const at::Tensor valid = padding.logical_not().unsqueeze(-1);
    scores = scores * valid, map = map.logical_and(valid);
  }
  return {scores, map};
}

at::Tensor switch_loss(const at::Tensor& scores, const at::Tensor& tokens_per_expert, const at::Tensor& total_tokens,
                       int64_t topk, int64_t num_experts, double coefficient) {
  const at::Tensor factor = double(num_experts) * coefficient / (double(topk) * total_tokens.clamp_min(1).square());
  return (scores.sum(0) * tokens_per_expert).sum() * factor;
}

at::Tensor sum_of_sequences(const at::Tensor& x, const at::Tensor& sequences, int64_t num_sequences) {
  return at::zeros({num_sequences, x.size(1)}, x.options()).index_add(0, sequences, x);
}

at::Tensor sequences_loss(const at::Tensor& scores, const at::Tensor& counts, int64_t topk, double coefficient) {
  const at::Tensor tokens = counts.sum(1) / topk;
  const at::Tensor factor = double(counts.size(1)) * coefficient / (double(topk) * tokens.sum().clamp_min(1));
  return ((scores * counts).sum(1) / tokens.clamp_min(1)).sum() * factor;
}

at::Tensor z_loss(const at::Tensor& logits, double coefficient, const at::Tensor& total_tokens,
                  const at::Tensor& padding) {
  at::Tensor squares = at::logsumexp(logits, {-1}).square();
  if (padding.defined()) squares = squares * padding.logical_not();
  return squares.sum() * (coefficient / total_tokens.clamp_min(1));
}

at::Tensor attach_loss(const at::Tensor& activation, const at::Tensor& loss, double scale) {
  return AttachLoss::apply(activation, loss, scale);
}

at::Tensor updated_expert_bias(const at::Tensor& bias, const at::Tensor& tokens_per_expert, double rate) {
  const at::NoGradGuard no_grad;
  const at::Tensor counts = tokens_per_expert.to(at::kFloat);
  return bias + (counts.mean(-1, true) - counts).sign() * rate;
}

}  // namespace hexad::modeling
