#include "plugins/dtensor/gradient_sums.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

namespace hexad::dtensor {

using modeling::GradientSum;

void GradientSums::begin() {
  earlier_.clear();
  if (model_.groups().tp.size() == 1 && model_.groups().replicas.size() == 1) return;
  for (ShardedUnit& unit : model_.units()) {
    earlier_.push_back(unit.grad());
    unit.grad() = at::Tensor();
  }
}

void GradientSums::finish() {
  const at::NoGradGuard no_grad;
  for (size_t u = 0; u < earlier_.size(); ++u) {
    ShardedUnit& unit = model_.units()[u];
    if (!unit.grad().defined()) unit.grad() = at::zeros_like(unit.master());  // nothing but dummies here
    for (const GradientSum kind : {GradientSum::all, GradientSum::if_sequence, GradientSum::equal_slices})
      sum_parts(unit, kind);
    model_.groups().replicas.all_reduce(unit.grad()).wait();
    if (earlier_[u].defined()) unit.grad().add_(earlier_[u]);
  }
  earlier_.clear();
}

// The weights of one kind travel together: most are vectors.
void GradientSums::sum_parts(ShardedUnit& unit, GradientSum kind) {
  const Groups& groups = model_.groups();
  const modeling::Group group = modeling::sum_group(kind, {groups.tp, sequence_parallel_}, groups.equal_heads);
  if (group.size() == 1) return;
  std::vector<at::Tensor> rows, flat;
  for (size_t i = 0; i < unit.params().size(); ++i) {
    if (unit.params()[i].part.gradient != kind || unit.params()[i].rows.size() == 0) continue;
    rows.push_back(unit.rows_of(unit.grad(), i));
    flat.push_back(rows.back().reshape({-1}));
  }
  if (rows.empty()) return;
  const at::Tensor sum = at::cat(flat);
  group.all_reduce(sum).wait();
  int64_t offset = 0;
  for (const at::Tensor& part : rows) {
    part.copy_(sum.narrow(0, offset, part.numel()).view(part.sizes()));
    offset += part.numel();
  }
}

std::vector<at::Tensor> GradientSums::counted(const std::vector<at::Tensor>& grads) const {
  std::vector<at::Tensor> result;
  // Never empty: the norm of nothing has a device too.
  if (model_.groups().replicas.rank() != 0) return {at::zeros({1}, grads.front().options())};
  for (size_t u = 0; u < grads.size(); ++u) {
    const ShardedUnit& unit = model_.units()[u];
    const auto copies = [](const ShardedParam& param) { return param.part.copy != 0; };
    if (std::none_of(unit.params().begin(), unit.params().end(), copies)) {
      result.push_back(grads[u]);
      continue;
    }
    for (size_t i = 0; i < unit.params().size(); ++i)
      if (!copies(unit.params()[i])) result.push_back(unit.rows_of(grads[u], i));
  }
  return result;
}

}  // namespace hexad::dtensor
