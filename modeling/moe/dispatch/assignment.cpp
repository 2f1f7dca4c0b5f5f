#include "modeling/moe/dispatch/assignment.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

namespace hexad::modeling {
namespace {

constexpr double kSinkhornEps = 1e-8;
constexpr int kMaxSinkhornIterations = 10000;  // logits that are not finite would never converge

}  // namespace

at::Tensor sinkhorn(const at::Tensor& logits, double tolerance) {
  const at::NoGradGuard no_grad;
  const at::Tensor cost = logits.to(at::kFloat).exp();
  const double rows = double(cost.size(0)), columns = double(cost.size(1));
  at::Tensor row_factor, column_factor = at::ones({cost.size(1)}, cost.options());
  for (int i = 0; i < kMaxSinkhornIterations; ++i) {
    row_factor = (1 / rows) / ((column_factor * cost).sum(1) + kSinkhornEps);
    const at::Tensor next = (1 / columns) / ((row_factor.unsqueeze(1) * cost).sum(0) + kSinkhornEps);
    const double moved = (next - column_factor).abs().mean().item<double>();
    column_factor = next;
    if (!(moved > tolerance)) break;
  }
  return column_factor * cost * row_factor.unsqueeze(1);
}

Routing sinkhorn_routing(const at::Tensor& logits, int64_t topk, bool training) {
  const at::Tensor scores =
      topk == 1 ? at::sigmoid(logits) : at::softmax(logits, -1, at::kFloat).to(logits.scalar_type());
  const at::Tensor ranked = training ? sinkhorn(logits.detach()) : scores.detach();
  const at::Tensor experts = std::get<1>(ranked.topk(topk, 1));
  return {scores.gather(1, experts), experts, {}};
}

QuantileSelection quantile_selection(const at::Tensor& logits, int64_t topk, const at::Tensor& beta,
                                     const Group& group) {
  const at::NoGradGuard no_grad;
  const at::Tensor local = logits.detach().to(at::kFloat).contiguous();
  at::Tensor all = local;
  if (group.size() > 1) {
    all = at::empty({group.size() * local.size(0), local.size(1)}, local.options());
    group.all_gather(all, local).wait();
  }
  const auto [values, indices] = (all - beta).topk(topk + 1, 1);
  const at::Tensor first_left_out = values.slice(1, topk);
  const int64_t share = all.size(0) * topk / all.size(1);
  const at::Tensor quantile = std::get<0>((all - first_left_out).topk(share + 1, 0))[share];
  const int64_t begin = group.rank() * local.size(0);
  return {indices.slice(0, begin, begin + local.size(0)).slice(1, 0, topk).contiguous(), quantile};
}

}  // namespace hexad::modeling
