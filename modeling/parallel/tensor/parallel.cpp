#include "modeling/parallel/tensor/parallel.hpp"

#include <ATen/Functions.h>

#include "modeling/error.hpp"
#include "modeling/op/fp8/linear.hpp"
#include "modeling/op/function.hpp"
#include "modeling/op/gemm.hpp"
#include "modeling/op/linear.hpp"
#include "modeling/parallel/tensor/token_pipeline.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<int64_t> with_rows(const at::Tensor& x, int64_t rows) {
  std::vector<int64_t> shape = x.sizes().vec();
  shape[0] = rows;
  return shape;
}

struct Sum {
  at::Tensor out;
  Pending pending;
  at::Tensor wait() {
    pending.wait();
    return out;
  }
};

Sum start_gather(const at::Tensor& x, const Group& group) {
  Sum result{at::empty(with_rows(x, x.size(0) * group.size()), x.options()), {}};
  result.pending = group.all_gather(result.out, x.contiguous());
  return result;
}

Sum start_reduce_scatter(const at::Tensor& x, const Group& group) {
  if (x.size(0) % group.size() != 0) {
    fail("sequence parallel: {} tokens do not divide over {} ranks", x.size(0), group.size());
  }
  Sum result{at::empty(with_rows(x, x.size(0) / group.size()), x.options()), {}};
  result.pending = group.reduce_scatter(result.out, x.contiguous());
  return result;
}

Sum start_all_reduce(const at::Tensor& x, const Group& group) {
  Sum result{x.clone(at::MemoryFormat::Contiguous), {}};
  result.pending = group.all_reduce(result.out);
  return result;
}

void keep_group(AutogradContext* ctx, const Group& group) {
  ctx->saved_data["group"] = reinterpret_cast<int64_t>(group.native());
}
Group kept_group(AutogradContext* ctx) {
  return Group(reinterpret_cast<c10d::ProcessGroup*>(ctx->saved_data["group"].toInt()));
}

// Forward and backward of the four moves, each other's mirror images.
template <Sum (*Forward)(const at::Tensor&, const Group&), Sum (*Backward)(const at::Tensor&, const Group&)>
struct Move : Function<Move<Forward, Backward>> {
  static at::Tensor run(Sum (*move)(const at::Tensor&, const Group&), const at::Tensor& x, const Group& group) {
    return move ? move(x, group).wait() : x.view_as(x);
  }
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const Group& group) {
    keep_group(ctx, group);
    return run(Forward, x, group);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {run(Backward, grads[0], kept_group(ctx)), at::Tensor()};
  }
};

// Undefined where it has been added to the weight's sum (op/linear.hpp).
at::Tensor weight_gradient(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight) {
  const at::Tensor sum = grad_sum_of(weight);
  if (!sum.defined()) return gemm(grad.t(), x);
  accumulate_product(sum, grad, x);
  return {};
}

struct Column : Function<Column> {
  // One output a weight; autograd sees tensors, not lists of them.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& first,
                               const std::optional<at::Tensor>& second, const std::optional<at::Tensor>& third,
                               const TensorParallel& tp, const LinearOptions& options) {
    variable_list weights = {first};
    for (const std::optional<at::Tensor>& weight : {second, third})
      if (weight) weights.push_back(*weight);
    keep_group(ctx, tp.group);
    ctx->saved_data["sequence"] = tp.sequence_parallel;
    variable_list saved = {x};
    saved.insert(saved.end(), weights.begin(), weights.end());
    ctx->save_for_backward(saved);
    if (tp.pipelines_tokens()) return gather_and_multiply(x, weights, tp.group, tp.token_runs).products;
    const at::Tensor whole = tp.sequence_parallel ? start_gather(x, tp.group).wait() : x;
    const bool fp8 = options.row_tile == 0 && fits_fp8(whole, weights);
    ctx->saved_data["fp8"] = static_cast<int64_t>(fp8 ? options.fp8 : Fp8::off);
    ctx->saved_data["casts"] = reinterpret_cast<int64_t>(options.fp8_casts);
    return apply_linears(whole, weights, variable_list(weights.size()), options);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    if (const auto fp8 = ctx->saved_data.find("fp8"); fp8 != ctx->saved_data.end() && fp8->second.toInt() != 0)
      return fp8_backward(ctx, grads, static_cast<Fp8>(fp8->second.toInt()));
    const variable_list saved = ctx->get_saved_variables();
    const Group group = kept_group(ctx);
    const bool sequence = ctx->saved_data["sequence"].toBool();
    Sum whole;  // the tokens travel while the gradient of x is computed ...
    if (sequence) whole = start_gather(saved[0], group);
    at::Tensor grad_x;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined()) continue;
      const at::Tensor part = gemm(grads[i], saved[i + 1]);
      grad_x = grad_x.defined() ? grad_x + part : part;
    }
    if (!grad_x.defined())
      grad_x = at::zeros(with_rows(saved[0], saved[0].size(0) * (sequence ? group.size() : 1)), saved[0].options());
    const at::Tensor x = sequence ? whole.wait() : saved[0];
    Sum reduced = sequence ? start_reduce_scatter(grad_x, group) : start_all_reduce(grad_x, group);
    variable_list result = {at::Tensor()};  // ... and that gradient while those of the weights are
    for (size_t i = 0; i < grads.size(); ++i)
      result.push_back(grads[i].defined() ? weight_gradient(grads[i], x, saved[i + 1]) : at::Tensor());
    result[0] = reduced.wait();
    result.resize(6);  // x, three weights, and two that are no tensors
    return result;
  }

  // Likewise; of one type, gradients that are missing are zeros.
  static variable_list fp8_backward(AutogradContext* ctx, variable_list& grads, Fp8 fp8) {
    const variable_list saved = ctx->get_saved_variables(), weights(saved.begin() + 1, saved.end());
    const Group group = kept_group(ctx);
    const bool sequence = ctx->saved_data["sequence"].toBool();
    const int64_t tokens = saved[0].size(0) * (sequence ? group.size() : 1);
    Sum whole;
    if (sequence) whole = start_gather(saved[0], group);
    for (size_t i = 0; i < weights.size(); ++i)
      if (!grads[i].defined()) grads[i] = at::zeros({tokens, weights[i].size(0)}, saved[0].options());
    grads.resize(weights.size());
    const Fp8Gradients gradients(grads, fp8);
    auto* const casts = reinterpret_cast<Fp8Casts*>(ctx->saved_data["casts"].toInt());
    const at::Tensor grad_x = gradients.of_input(weights, {}, casts), x = sequence ? whole.wait() : saved[0];
    Sum reduced = sequence ? start_reduce_scatter(grad_x, group) : start_all_reduce(grad_x, group);
    const Fp8Tensor input = fp8_input(x, fp8, Fp8Copies::columns);
    variable_list result = gradients.of_weights(by_columns(input), weights);
    result.insert(result.begin(), reduced.wait());
    result.resize(6);
    return result;
  }
};

// A row-parallel product with sequence parallelism whose tokens travel in runs, there and back.
struct PipelinedRow : Function<PipelinedRow> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const TensorParallel& tp) {
    keep_group(ctx, tp.group);
    ctx->saved_data["runs"] = tp.token_runs;
    ctx->save_for_backward({x, weight});
    return multiply_and_scatter(x, weight, tp.group, tp.token_runs);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const GatheredProducts grad =
        gather_and_multiply(grads[0], {saved[1].t()}, kept_group(ctx), ctx->saved_data["runs"].toInt());
    return {grad.products[0], weight_gradient(grad.gathered, saved[0], saved[1]), at::Tensor()};
  }
};

}  // namespace

at::Tensor gather_tokens(const at::Tensor& x, const Group& group) {
  return group.size() == 1 ? x : Move<start_gather, start_reduce_scatter>::apply(x, group);
}
at::Tensor reduce_scatter_tokens(const at::Tensor& x, const Group& group) {
  return group.size() == 1 ? x : Move<start_reduce_scatter, start_gather>::apply(x, group);
}
at::Tensor copy_to_ranks(const at::Tensor& x, const Group& group) {
  return group.size() == 1 ? x : Move<nullptr, start_all_reduce>::apply(x, group);
}
at::Tensor sum_over_ranks(const at::Tensor& x, const Group& group) {
  return group.size() == 1 ? x : Move<start_all_reduce, nullptr>::apply(x, group);
}

std::vector<at::Tensor> column_parallel(const at::Tensor& x, const std::vector<at::Tensor>& weights,
                                        const std::vector<at::Tensor>& biases, const TensorParallel& tp,
                                        const LinearOptions& options) {
  if (!tp.active()) return apply_linears(x, weights, biases, options);
  if (weights.empty() || weights.size() > 3) fail("column_parallel: got {} weights, wanted 1 to 3", weights.size());
  const auto weight = [&](size_t i) { return i < weights.size() ? std::optional(weights[i]) : std::nullopt; };
  std::vector<at::Tensor> out = Column::apply(x, weights[0], weight(1), weight(2), tp, options);
  for (size_t i = 0; i < out.size(); ++i)
    if (biases[i].defined()) out[i] = out[i] + biases[i];
  return out;
}

at::Tensor row_parallel(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const TensorParallel& tp,
                        const LinearOptions& options) {
  if (!tp.active()) return apply_linear(x, weight, bias, options);
  at::Tensor sum;
  if (tp.pipelines_tokens()) {
    sum = PipelinedRow::apply(x, weight, tp);
  } else {
    const at::Tensor part = apply_linear(x, weight, {}, options);
    sum = tp.sequence_parallel ? reduce_scatter_tokens(part, tp.group) : sum_over_ranks(part, tp.group);
  }
  return bias.defined() ? sum + bias : sum;
}

at::Tensor vocab_parallel_embed(const at::Tensor& rows, int64_t first_row, const at::Tensor& ids,
                                const TensorParallel& tp) {
  const at::Tensor local = ids - first_row;
  const at::Tensor mine = local.ge(0).logical_and(local.lt(rows.size(0)));
  at::Tensor found = at::embedding(rows, local.where(mine, at::zeros_like(local)));
  if (found.element_size() < 4) found = found.to(at::kFloat);  // the residual stream is not held in 16 bits
  found = found * mine.unsqueeze(1).to(found.scalar_type());
  return tp.shards_tokens() ? reduce_scatter_tokens(found, tp.group) : sum_over_ranks(found, tp.group);
}

}  // namespace hexad::modeling
