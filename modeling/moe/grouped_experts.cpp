#include "modeling/moe/grouped_experts.hpp"

#include <ATen/Functions.h>

#include <algorithm>

#include "modeling/moe/fp8_experts.hpp"
#include "modeling/moe/grouped_products.hpp"
#include "modeling/op/cuda/expert/expert_operators.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/fp8/fp8.hpp"
#include "modeling/op/function.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Weights = std::vector<at::Tensor>;

at::Tensor wide(const at::Tensor& x) { return x.element_size() < 4 ? x.to(at::kFloat) : x; }

// The weights of E experts as autograd keeps them: gates, ups, downs.
Weights part(const Weights& all, size_t index) {
  const auto experts = static_cast<std::ptrdiff_t>(all.size() / 3),
             begin = static_cast<std::ptrdiff_t>(index) * experts;
  return {all.begin() + begin, all.begin() + begin + experts};
}

struct Saved {
  at::Tensor x, probs, gate_up, ends, tokens, slots, rows;
  Weights weights;

  void keep(AutogradContext* ctx) const {
    variable_list all = {x, probs, gate_up, ends, tokens, slots, rows};
    all.insert(all.end(), weights.begin(), weights.end());
    ctx->save_for_backward(all);
  }
  explicit Saved(variable_list all)
      : x(all[0]), probs(all[1]), gate_up(all[2]), ends(all[3]), tokens(all[4]), slots(all[5]), rows(all[6]) {
    weights.assign(all.begin() + 7, all.end());
  }
  Saved(const at::Tensor& input, const at::Tensor& weighting, const Permutation& order, at::TensorList leaves)
      : x(input),
        probs(weighting),
        ends(order.ends),
        tokens(order.tokens),
        slots(order.slots),
        rows(order.rows),
        weights(leaves.vec()) {}
};

// What stacked() takes.
struct Stacked {
  Weights first, second = {};
};
struct Precision {
  bool fp8;
  Fp8Casts* casts;
};

// Rows [N, in] times weights [E, out, in]; of gradients, [N, out].
at::Tensor row_product(const at::Tensor& rows, const Saved& s, const Stacked& weights, const Precision& in,
                       bool of_gradients) {
  if (in.fp8)
    return fp8_grouped_product(to_fp8_rows(rows), fp8_experts(weights.first, weights.second, of_gradients, in.casts),
                               s.ends, rows.scalar_type(), /*fast=*/!of_gradients);
  const at::Tensor whole = stacked(weights.first, weights.second);
  return of_gradients ? grouped_input_gradient(rows, whole, s.ends) : grouped_product(rows, whole, s.ends);
}

// The same of tokens, each with a row for each of its experts: in FP8 they are cast first, and bytes travel.
at::Tensor token_product(const at::Tensor& x, const Saved& s, const Stacked& weights, const Precision& in,
                         bool of_gradients) {
  if (in.fp8)
    return fp8_grouped_product(spread_rows(to_fp8_rows(x), s.tokens, s.rows),
                               fp8_experts(weights.first, weights.second, of_gradients, in.casts), s.ends,
                               x.scalar_type(), /*fast=*/!of_gradients);
  return row_product(spread_rows(x, s.tokens, s.rows), s, weights, in, of_gradients);
}

struct GroupedExperts : Function<GroupedExperts> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const std::optional<at::Tensor>& probs,
                            at::TensorList weights, const Permutation& order, const Precision& in) {
    Saved s(x, probs ? probs->to(at::kFloat).flatten() : at::Tensor(), order, weights);
    ctx->saved_data["fp8"] = in.fp8;
    ctx->saved_data["casts"] = reinterpret_cast<int64_t>(in.casts);
    if (probs) ctx->saved_data["probs"] = c10::IValue(static_cast<int64_t>(probs->scalar_type()));
    if (probs) ctx->saved_data["shape"] = probs->sizes().vec();
    if (s.tokens.numel() == 0) {
      s.keep(ctx);
      return at::zeros_like(x);
    }
    s.gate_up = token_product(x, s, {part(s.weights, 0), part(s.weights, 1)}, in, false);
    const at::Tensor activation = weighted_swiglu(s.gate_up, s.probs, s.slots);
    s.keep(ctx);
    return sum_rows(row_product(activation, s, {part(s.weights, 2)}, in, false), s.rows);
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const Saved s(ctx->get_saved_variables());
    if (s.tokens.numel() == 0) return without_rows(ctx, s);
    const Weights gates = part(s.weights, 0), ups = part(s.weights, 1), downs = part(s.weights, 2);
    const Precision in = {ctx->saved_data["fp8"].toBool(),
                          reinterpret_cast<Fp8Casts*>(ctx->saved_data["casts"].toInt())};
    const bool with_weights =
        std::any_of(s.weights.begin(), s.weights.end(), [](auto& w) { return w.requires_grad(); });
    variable_list result(2), of_down(downs.size());
    WeightedSwigluGradient between;
    {
      const at::Tensor grad = in.fp8 && !with_weights ? at::Tensor() : spread_rows(grads[0], s.tokens, s.rows);
      const at::Tensor grad_activation =
          in.fp8 ? token_product(grads[0], s, {downs}, in, true) : grouped_input_gradient(grad, stacked(downs), s.ends);
      between = weighted_swiglu_gradient(grad_activation, s.gate_up, s.probs, s.slots);
      if (with_weights) of_down = grouped_weight_gradients(grad, between.activation, {downs}, s.ends);
      between.activation = at::Tensor();
    }
    if (ctx->needs_input_grad(0)) result[0] = sum_rows(row_product(between.gate_up, s, {gates, ups}, in, true), s.rows);
    result[1] = given_probs(ctx, between.probs);
    Weights of_inputs(gates.size() + ups.size());
    if (with_weights)
      of_inputs = grouped_weight_gradients(between.gate_up, spread_rows(s.x, s.tokens, s.rows), {gates, ups}, s.ends);
    result.insert(result.end(), of_inputs.begin(), of_inputs.end());
    result.insert(result.end(), of_down.begin(), of_down.end());
    result.resize(result.size() + 2);  // of the order and the type
    return result;
  }

  // No products, but a graph: what moves the rows may be a collective, whose backward pass needs every rank.
  static variable_list without_rows(AutogradContext* ctx, const Saved& s) {
    variable_list result(s.weights.size() + 4);
    result[0] = at::zeros_like(s.x);
    result[1] = given_probs(ctx, s.probs);
    return result;
  }

  // fp32 [N], in the shape and type of the probabilities.
  static at::Tensor given_probs(AutogradContext* ctx, const at::Tensor& values) {
    if (!values.defined()) return {};
    return values.view(ctx->saved_data["shape"].toIntVector())
        .to(static_cast<at::ScalarType>(ctx->saved_data["probs"].toInt()));
  }
};

}  // namespace

bool fits_grouped_experts(const at::Tensor& tokens, const ExpertWeights& weights) {
  for (const Weights* part : {&weights.gate, &weights.up, &weights.down})
    if (!fits_grouped_products(tokens, *part)) return false;
  return true;
}

bool fits_fp8_experts(const at::Tensor& tokens, const ExpertWeights& weights) {
  const auto fits = [](const at::Tensor& w) { return w.size(0) % kFp8Multiple == 0 && w.size(1) % kFp8Multiple == 0; };
  return weights.fp8 && !weights.gate.empty() && fits(weights.gate[0]) &&
         (tokens.is_cpu() || fits_grouped_experts(tokens, weights));
}

at::Tensor grouped_experts(const at::Tensor& tokens, const at::Tensor& probs, const Permutation& order,
                           const ExpertWeights& w) {
  Weights all = w.gate;
  all.insert(all.end(), w.up.begin(), w.up.end());
  all.insert(all.end(), w.down.begin(), w.down.end());
  const std::optional<at::Tensor> given = probs.defined() ? std::optional(probs) : std::nullopt;
  return GroupedExperts::apply(tokens, given, at::TensorList(all), order,
                               Precision{fits_fp8_experts(tokens, w), w.fp8_casts});
}

at::Tensor weighted_swiglu(const at::Tensor& gate_up, const at::Tensor& probs, const at::Tensor& slots) {
  const int64_t columns = gate_up.size(1) / 2;
  if (cuda::has_kernels(gate_up) && columns % 8 == 0) return cuda::weighted_swiglu(gate_up, probs, slots);
  const std::vector<at::Tensor> halves = wide(gate_up).chunk(2, 1);
  const at::Tensor plain = at::silu(halves[0]) * halves[1];
  return (probs.defined() ? plain * probs.index_select(0, slots).unsqueeze(1) : plain).to(gate_up.scalar_type());
}

WeightedSwigluGradient weighted_swiglu_gradient(const at::Tensor& grad, const at::Tensor& gate_up,
                                                const at::Tensor& probs, const at::Tensor& slots) {
  if (cuda::has_kernels(gate_up) && gate_up.size(1) % 16 == 0) {
    const cuda::WeightedSwigluGradient found = cuda::weighted_swiglu_gradient(grad, gate_up, probs, slots);
    return {found.gate_up, found.probs, found.activation};
  }
  const std::vector<at::Tensor> halves = wide(gate_up).chunk(2, 1);
  const at::Tensor sigmoid = at::sigmoid(halves[0]), silu = halves[0] * sigmoid, plain = silu * halves[1];
  const at::Tensor prob =
      probs.defined() ? probs.index_select(0, slots).unsqueeze(1) : at::ones({1, 1}, plain.options());
  const at::Tensor wide_grad = wide(grad), weighted = wide_grad * prob;
  const at::Tensor grads = at::cat({weighted * halves[1] * (sigmoid + silu * (1 - sigmoid)), weighted * silu}, 1);
  WeightedSwigluGradient out{grads.to(gate_up.scalar_type()), {}, (plain * prob).to(gate_up.scalar_type())};
  if (probs.defined())
    out.probs = at::empty_like(probs).index_copy_(0, slots, (wide_grad * plain).sum(1).to(probs.scalar_type()));
  return out;
}

}  // namespace hexad::modeling
