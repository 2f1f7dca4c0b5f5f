#include "modeling/op/fp8/linear.hpp"

#include <ATen/Functions.h>

#include "modeling/op/row/adjacent.hpp"
#include "modeling/op/fp8/blocks.hpp"
#include "modeling/op/function.hpp"
#include "modeling/op/linear.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<at::Tensor>;
using Tensors = std::vector<at::Tensor>;

bool any_wants_gradient(const Tensors& weights) {
  return std::any_of(weights.begin(), weights.end(), [](const at::Tensor& w) { return w.requires_grad(); });
}

// Of all columns; zeros where one has none. Undefined where none has.
at::Tensor joined_bias(const Tensors& biases, const Tensors& weights) {
  if (std::none_of(biases.begin(), biases.end(), [](const at::Tensor& b) { return b.defined(); })) return {};
  if (biases.size() == 1) return biases[0];
  Tensors all;
  for (size_t i = 0; i < weights.size(); ++i)
    all.push_back(biases[i].defined() ? biases[i] : at::zeros({weights[i].size(0)}, weights[i].options()));
  return at::cat(all);
}

Tensors products(const Fp8Tensor& x, const Fp8Tensor& w, const Tensors& weights, const Tensors& biases) {
  const at::Tensor y =
      fp8_product(by_rows(x), by_rows(w), joined_bias(biases, weights), weights[0].scalar_type(), /*fast=*/true);
  if (weights.size() == 1) return {y};
  std::vector<int64_t> widths;
  for (const at::Tensor& weight : weights) widths.push_back(weight.size(0));
  return side_by_side(y, widths);
}

struct Fp8Linears : Function<Fp8Linears> {
  // Autograd sees tensors, not lists of them.
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& w0,
                               const OptionalTensor& w1, const OptionalTensor& w2, const OptionalTensor& b0,
                               const OptionalTensor& b1, const OptionalTensor& b2, int64_t fp8, Fp8Casts* casts) {
    Tensors weights = {w0}, biases;
    for (const OptionalTensor& weight : {w1, w2})
      if (weight) weights.push_back(*weight);
    for (const OptionalTensor& bias : {b0, b1, b2}) biases.push_back(bias.value_or(at::Tensor()));
    biases.resize(weights.size());
    const Fp8Tensor input =
        fp8_input(x, static_cast<Fp8>(fp8), any_wants_gradient(weights) ? Fp8Copies::both : Fp8Copies::rows);
    const Fp8Tensor weight = fp8_weights(weights, static_cast<Fp8>(fp8), Fp8Copies::rows, {}, casts);
    variable_list saved = {input.columns, by_columns(input).inverse, weight.range.largest, weight.range.inverse};
    saved.insert(saved.end(), weights.begin(), weights.end());
    ctx->save_for_backward(saved);
    ctx->saved_data["biased"] = c10::List<bool>({b0.has_value(), b1.has_value(), b2.has_value()});
    ctx->saved_data["tokens"] = x.size(0);
    ctx->saved_data["fp8"] = fp8;
    ctx->saved_data["casts"] = reinterpret_cast<int64_t>(casts);
    return products(input, weight, weights, biases);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensors weights(saved.begin() + 4, saved.end());
    for (size_t i = 0; i < weights.size(); ++i)
      if (!grads[i].defined())
        grads[i] = at::zeros({ctx->saved_data["tokens"].toInt(), weights[i].size(0)}, weights[i].options());
    const bool of_input = ctx->needs_input_grad(0), of_weights = saved[0].defined();
    const Fp8Copies copies = !of_weights ? Fp8Copies::rows : of_input ? Fp8Copies::both : Fp8Copies::columns;
    variable_list result(9);
    if (of_input || of_weights) {
      const Fp8 fp8 = static_cast<Fp8>(ctx->saved_data["fp8"].toInt());
      const Fp8Gradients gradients(grads, fp8, copies);
      auto* const casts = reinterpret_cast<Fp8Casts*>(ctx->saved_data["casts"].toInt());
      if (of_input) result[0] = gradients.of_input(weights, {saved[2], saved[3]}, casts);
      if (of_weights) {
        const Fp8Scaling scaling = is_blockwise(fp8) ? Fp8Scaling::strips : Fp8Scaling::tensor;
        const Tensors all = gradients.of_weights({saved[0], saved[1], scaling}, weights);
        std::copy(all.begin(), all.end(), result.begin() + 1);
      }
    }
    const auto biased = ctx->saved_data["biased"].toBoolList();
    for (size_t i = 0; i < weights.size(); ++i)
      if (biased[i]) result[4 + i] = grads[i].sum(0);
    return result;
  }
};

}  // namespace

Fp8Tensor fp8_input(const at::Tensor& x, Fp8 fp8, Fp8Copies copies) {
  return is_blockwise(fp8) ? to_fp8_strips({x}, fp8_value_type(fp8), copies)
                           : to_fp8({x}, 0, fp8_value_type(fp8), copies);
}

Fp8Tensor fp8_weights(const Tensors& weights, Fp8 fp8, Fp8Copies copies, const Fp8Range& range, Fp8Casts* casts) {
  const auto make = [&](const Fp8Range& known) {
    return is_blockwise(fp8) ? to_fp8_blocks(weights, copies)
                             : to_fp8(weights, 0, fp8_value_type(fp8), copies, known.largest.defined() ? known : range);
  };
  return casts ? casts->get(weights, copies, make) : make({});
}

bool fits_fp8(const at::Tensor& x, const Tensors& weights) {
  const auto narrow = [](const at::Tensor& t) {
    return t.scalar_type() == at::kFloat || t.scalar_type() == at::kBFloat16 || t.scalar_type() == at::kHalf;
  };
  if (x.dim() != 2 || x.size(0) == 0 || x.size(1) % kFp8Multiple != 0 || !narrow(x)) return false;
  return std::all_of(weights.begin(), weights.end(), [&](const at::Tensor& w) {
    return w.size(0) % kFp8Multiple == 0 && w.numel() > 0 && w.scalar_type() == x.scalar_type();
  });
}

Tensors fp8_linears(const at::Tensor& x, const Tensors& weights, const Tensors& biases, Fp8 fp8, Fp8Casts* casts) {
  if (!at::GradMode::is_enabled()) {
    const Fp8Tensor weight = fp8_weights(weights, fp8, Fp8Copies::rows, {}, casts);
    return products(fp8_input(x, fp8, Fp8Copies::rows), weight, weights, biases);
  }
  const auto at_index = [](const Tensors& all, size_t i) {
    return i < all.size() && all[i].defined() ? OptionalTensor(all[i]) : std::nullopt;
  };
  return Fp8Linears::apply(x, weights[0], at_index(weights, 1), at_index(weights, 2), at_index(biases, 0),
                           at_index(biases, 1), at_index(biases, 2), static_cast<int64_t>(fp8), casts);
}

Fp8Gradients::Fp8Gradients(const Tensors& grads, Fp8 fp8, Fp8Copies copies)
    : fp8_(fp8),
      grads_(is_blockwise(fp8) ? to_fp8_strips(grads, fp8_gradient_type(fp8), copies)
                               : to_fp8(grads, 1, fp8_gradient_type(fp8), copies)),
      type_(grads[0].scalar_type()) {}

at::Tensor Fp8Gradients::of_input(const Tensors& weights, const Fp8Range& range, Fp8Casts* casts) const {
  const Fp8Tensor w = fp8_weights(weights, fp8_, Fp8Copies::columns, range, casts);
  return fp8_product(by_rows(grads_), by_columns(w), {}, type_, /*fast=*/false);
}

Tensors Fp8Gradients::of_weights(const Fp8Matrix& x, const Tensors& weights) const {
  const Fp8Matrix g = by_columns(grads_);
  Tensors sums, result(weights.size());
  for (const at::Tensor& weight : weights) sums.push_back(grad_sum_of(weight));
  if (const at::Tensor whole = sums.size() > 1 ? adjacent(sums, 0) : at::Tensor(); whole.defined()) {
    accumulate_fp8_product(whole, g, x);
    return result;
  }
  int64_t begin = 0;
  for (size_t i = 0; i < weights.size(); begin += weights[i++].size(0)) {
    if (!weights[i].requires_grad()) continue;
    const Fp8Matrix part = rows_of(g, begin, weights[i].size(0));
    if (sums[i].defined()) {
      accumulate_fp8_product(sums[i], part, x);
    } else {
      result[i] = fp8_product(part, x, {}, weights[i].scalar_type(), /*fast=*/false);
    }
  }
  return result;
}

}  // namespace hexad::modeling
