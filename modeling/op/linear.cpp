#include "modeling/op/linear.hpp"

#include <ATen/Functions.h>

#include "modeling/error.hpp"
#include "modeling/op/cuda/batch_invariant.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/fp8/linear.hpp"
#include "modeling/op/function.hpp"
#include "modeling/op/gemm.hpp"
#include "modeling/op/row/adjacent.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<at::Tensor>;

OptionalTensor optional(const at::Tensor& x) { return x.defined() ? OptionalTensor(x) : std::nullopt; }

std::vector<int64_t> widths_of(const std::vector<at::Tensor>& weights) {
  std::vector<int64_t> widths;
  for (const at::Tensor& weight : weights) widths.push_back(weight.size(0));
  return widths;
}

// On a CPU its kernels would copy the strided results of one GEMM.
at::Tensor fused_weight(const at::Tensor& x, const std::vector<at::Tensor>& weights) {
  return x.is_cuda() && weights.size() > 1 ? adjacent(weights, 0) : at::Tensor();
}

std::vector<at::Tensor> products(const at::Tensor& x, const std::vector<at::Tensor>& weights,
                                 const std::vector<at::Tensor>& biases, bool batch_invariant) {
  std::vector<at::Tensor> out;
  const auto product = [&](const at::Tensor& weight, const at::Tensor& bias) {
    return batch_invariant ? cuda::invariant_linear(x, weight, bias) : gemm_linear(x, weight, bias);
  };
  if (const at::Tensor whole = fused_weight(x, weights); whole.defined()) {
    at::Tensor bias = adjacent(biases, 0);
    const bool all = std::all_of(biases.begin(), biases.end(), [](const at::Tensor& b) { return b.defined(); });
    if (all && !bias.defined()) bias = at::cat(biases);
    if (all || std::none_of(biases.begin(), biases.end(), [](const at::Tensor& b) { return b.defined(); }))
      return side_by_side(product(whole, bias), widths_of(weights));
  }
  for (size_t i = 0; i < weights.size(); ++i) out.push_back(product(weights[i], biases[i]));
  return out;
}

// The gradients of the products, as columns of one tensor.
at::Tensor joined(const variable_list& grads) {
  if (grads.size() == 1) return grads[0];
  const at::Tensor whole = adjacent(grads, 1);
  return whole.defined() ? whole : at::cat(grads, 1);
}

at::Tensor input_gradient(const at::Tensor& x, const variable_list& grads, const std::vector<at::Tensor>& weights) {
  if (const at::Tensor whole = fused_weight(x, weights); whole.defined()) return gemm(joined(grads), whole);
  at::Tensor sum = gemm(grads[0], weights[0]);
  for (size_t i = 1; i < weights.size(); ++i) add_gemm(sum, grads[i], weights[i]);
  return sum;
}

// Of each weight; undefined where it has been added to its sum.
std::vector<at::Tensor> weight_gradients(const at::Tensor& x, const variable_list& grads,
                                         const std::vector<at::Tensor>& weights) {
  std::vector<at::Tensor> sums, result(weights.size());
  for (const at::Tensor& weight : weights) sums.push_back(grad_sum_of(weight));
  const at::Tensor sum = x.is_cuda() && weights.size() > 1 ? adjacent(sums, 0) : at::Tensor();
  if (sum.defined()) {
    accumulate_product(sum, joined(grads), x);
    return result;
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    if (sums[i].defined()) {
      accumulate_product(sums[i], grads[i], x);
    } else if (weights[i].requires_grad()) {
      result[i] = gemm(grads[i].t(), x);
    }
  }
  return result;
}

struct Linears : Function<Linears> {
  // Autograd sees tensors, not lists of them.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& w0,
                               const OptionalTensor& w1, const OptionalTensor& w2, const OptionalTensor& b0,
                               const OptionalTensor& b1, const OptionalTensor& b2, bool batch_invariant) {
    std::vector<at::Tensor> weights = {w0}, biases;
    for (const OptionalTensor& weight : {w1, w2})
      if (weight) weights.push_back(*weight);
    for (const OptionalTensor& bias : {b0, b1, b2}) biases.push_back(bias.value_or(at::Tensor()));
    biases.resize(weights.size());
    ctx->saved_data["biased"] = c10::List<bool>({b0.has_value(), b1.has_value(), b2.has_value()});
    variable_list saved = {x};
    saved.insert(saved.end(), weights.begin(), weights.end());
    ctx->save_for_backward(saved);
    return products(x, weights, biases, batch_invariant);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor& x = saved[0];
    const std::vector<at::Tensor> weights(saved.begin() + 1, saved.end());
    for (size_t i = 0; i < weights.size(); ++i)
      if (!grads[i].defined()) grads[i] = at::zeros({x.size(0), weights[i].size(0)}, x.options());
    variable_list result(8);
    if (ctx->needs_input_grad(0)) result[0] = input_gradient(x, grads, weights);
    const std::vector<at::Tensor> of_weights = weight_gradients(x, grads, weights);
    std::copy(of_weights.begin(), of_weights.end(), result.begin() + 1);
    const auto biased = ctx->saved_data["biased"].toBoolList();
    if (biased[0] || biased[1] || biased[2]) {  // the sums of all columns at once
      int64_t begin = 0;
      const at::Tensor sums = joined(grads).sum(0);
      for (size_t i = 0; i < weights.size(); begin += weights[i++].size(0))
        if (biased[i]) result[4 + i] = sums.slice(0, begin, begin + weights[i].size(0));
    }
    return result;
  }
};

}  // namespace

at::Tensor apply_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        const LinearOptions& options) {
  return apply_linears(x, {weight}, {bias}, options)[0];
}

std::vector<at::Tensor> apply_linears(const at::Tensor& x, const std::vector<at::Tensor>& weights,
                                      const std::vector<at::Tensor>& biases, const LinearOptions& options) {
  if (weights.empty() || weights.size() > 3)
    fail("linears of one input: got {} weights, wanted 1 to 3", weights.size());
  if (options.row_tile > 0) {
    std::vector<at::Tensor> out;
    for (size_t i = 0; i < weights.size(); ++i)
      out.push_back(by_row_tiles(x, options.row_tile,
                                 [&](const at::Tensor& tile) { return gemm_linear(tile, weights[i], biases[i]); }));
    return out;
  }
  if (options.fp8 != Fp8::off && fits_fp8(x, weights))
    return fp8_linears(x, weights, biases, options.fp8, options.fp8_casts);
  if (!at::GradMode::is_enabled()) return products(x, weights, biases, options.batch_invariant);
  const auto weight = [&](size_t i) { return i < weights.size() ? OptionalTensor(weights[i]) : std::nullopt; };
  const auto bias = [&](size_t i) { return i < weights.size() ? optional(biases[i]) : std::nullopt; };
  return Linears::apply(x, weights[0], weight(1), weight(2), bias(0), bias(1), bias(2), options.batch_invariant);
}

at::Tensor by_row_tiles(const at::Tensor& x, int64_t row_tile, const std::function<at::Tensor(const at::Tensor&)>& f) {
  const int64_t rows = x.size(0);
  if (row_tile == 0 || rows == 0) return f(x);
  std::vector<at::Tensor> tiles;
  for (int64_t begin = 0; begin < rows; begin += row_tile) {
    at::Tensor tile = x.slice(0, begin, std::min(rows, begin + row_tile));
    const int64_t missing = row_tile - tile.size(0);
    if (missing > 0) tile = at::constant_pad_nd(tile, {0, 0, 0, missing});
    const at::Tensor result = f(tile);
    tiles.push_back(missing > 0 ? result.slice(0, 0, row_tile - missing) : result);
  }
  return at::cat(tiles, 0);
}

at::Tensor grad_sum_of(const at::Tensor& weight) {
  if (!weight.requires_grad() || !weight.is_leaf()) return {};
  const at::Tensor& sum = weight.grad();
  return sum.defined() && sum.scalar_type() == at::kFloat ? sum : at::Tensor();
}

void accumulate_product(const at::Tensor& sum, const at::Tensor& g, const at::Tensor& x) {
  if (cuda::has_kernels(g) && sum.is_cuda()) return cuda::accumulate_product(sum, g, x);
  const at::NoGradGuard no_grad;
  if (sum.dim() == 3) {
    const std::vector<at::Tensor> columns = g.chunk(sum.size(0), 1);
    for (int64_t part = 0; part < sum.size(0); ++part) accumulate_product(sum[part], columns[part], x);
  } else if (g.scalar_type() == at::kFloat) {
    add_gemm(sum, g.t(), x);
  } else {
    sum.add_(gemm(g.t(), x));
  }
}

}  // namespace hexad::modeling
