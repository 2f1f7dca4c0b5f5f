#include "modeling/moe/experts.hpp"

#include <ATen/Functions.h>

#include <numeric>

#include "modeling/error.hpp"
#include "modeling/op/checkpoint.hpp"
#include "modeling/op/linear.hpp"
#include "modeling/op/swiglu.hpp"

namespace hexad::modeling {
namespace {

void check_counts(const at::Tensor& rows, const std::vector<int64_t>& counts, const ExpertWeights& w) {
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (total != rows.size(0)) fail("experts: got {} rows, but the counts sum to {}", rows.size(0), total);
  const size_t local = size_t(w.local.size());
  if (counts.size() != local || w.gate.size() != local || w.up.size() != local || w.down.size() != local)
    fail("experts: got counts of {} experts and weights of {}, {} and {}, wanted {}", counts.size(), w.gate.size(),
         w.up.size(), w.down.size(), local);
}

// Rounded to the dtype of the activation once, after the product.
at::Tensor weighted_activation(const at::Tensor& activation, const at::Tensor& probs) {
  return (activation * probs.unsqueeze(-1)).to(activation.scalar_type());
}

// The second half of an expert's MLP. gate and up: [n, F]; probs [n] or undefined.
at::Tensor activate_and_project(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& probs,
                                const at::Tensor& down, bool recompute, int64_t row_tile) {
  const auto activate = [](const Tensors& in) -> Tensors {
    const at::Tensor activation = swiglu(in[0], in[1]);
    return {in.size() > 2 ? weighted_activation(activation, in[2]) : activation};
  };
  Tensors inputs = {gate, up};
  if (probs.defined()) inputs.push_back(probs);
  if (!recompute) return apply_linear(activate(inputs)[0], down, {}, row_tile);
  DiscardedOutputs activation(activate, inputs, {});
  const at::Tensor out = apply_linear(activation.outputs()[0], down, {}, row_tile);
  activation.discard_until(out);
  return out;
}

}  // namespace

at::Tensor grouped_mlp(const at::Tensor& rows, const std::vector<int64_t>& counts, const ExpertWeights& w,
                       const at::Tensor& row_probs, int64_t row_tile) {
  check_counts(rows, counts, w);
  // One split, not a slice for each expert: its backward pass is one concatenation.
  const std::vector<at::Tensor> inputs = rows.split_with_sizes(counts);
  const std::vector<at::Tensor> probs =
      row_probs.defined() ? row_probs.split_with_sizes(counts) : std::vector<at::Tensor>();
  std::vector<at::Tensor> outputs;
  for (size_t e = 0; e < counts.size(); ++e) {
    if (counts[e] == 0) continue;
    const at::Tensor gate = apply_linear(inputs[e], w.gate[e], {}, row_tile);
    const at::Tensor up = apply_linear(inputs[e], w.up[e], {}, row_tile);
    outputs.push_back(activate_and_project(gate, up, probs.empty() ? at::Tensor() : probs[e], w.down[e],
                                           w.recompute_activation, row_tile));
  }
  if (!outputs.empty()) return at::cat(outputs);
  // Still a graph of both inputs: what moved them here is a collective, whose backward pass needs every rank.
  return row_probs.defined() ? weighted_activation(rows, row_probs) : rows * 0;
}

}  // namespace hexad::modeling
