// Packed causal attention in fp64, sequence by sequence, and how far a result may be from it.
#pragma once
#include <cmath>
#include <vector>

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>

namespace hexad::modeling {

// q [n, Hq, D], k [n, Hkv, D], v [n, Hkv, Dv] of one sequence.
inline at::Tensor sequence_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t window) {
  const int64_t group = q.size(1) / k.size(1);
  const at::Tensor index = at::arange(q.size(0), q.options().dtype(at::kLong));
  const at::Tensor distance = index.unsqueeze(1) - index.unsqueeze(0);
  at::Tensor hidden = distance < 0;
  if (window > 0) hidden = hidden.logical_or(distance >= window);
  const at::Tensor keys = k.repeat_interleave(group, 1).permute({1, 2, 0});
  const at::Tensor values = v.repeat_interleave(group, 1).transpose(0, 1);
  const at::Tensor scores = at::matmul(q.transpose(0, 1), keys) / std::sqrt(double(q.size(2)));
  return at::matmul(scores.masked_fill(hidden, -INFINITY).softmax(-1), values).transpose(0, 1);
}

struct AttentionReference {
  at::Tensor out, grad_q, grad_k, grad_v;  // fp64
};

// Of the values that the (16-bit) inputs hold, on their device.
inline AttentionReference attention_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                              const at::Tensor& grad_out, const std::vector<int64_t>& offsets,
                                              int64_t window) {
  std::vector<std::vector<at::Tensor>> parts(4);
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (offsets[i] == offsets[i + 1]) continue;
    const auto rows = [&](const at::Tensor& x) {
      return x.detach().slice(0, offsets[i], offsets[i + 1]).to(at::kDouble);
    };
    const std::vector<at::Tensor> in = {rows(q).requires_grad_(), rows(k).requires_grad_(), rows(v).requires_grad_()};
    const at::Tensor out = sequence_reference(in[0], in[1], in[2], window);
    const std::vector<at::Tensor> grads = torch::autograd::grad({out}, in, {rows(grad_out)});
    parts[0].push_back(out.detach());
    for (size_t j = 0; j < 3; ++j) parts[j + 1].push_back(grads[j]);
  }
  return {at::cat(parts[0]), at::cat(parts[1]), at::cat(parts[2]), at::cat(parts[3])};
}

struct AttentionError {
  double whole = 0;  // ||got - want|| / ||want||
  double token = 0;  // the worst token's ||got - want|| over the larger of its own ||want|| and the tokens' mean of it
};

// [T, heads, width] each, made of inputs of unit variance: a result that should vanish is measured against 1e-3 an
// element. NaN where got holds one.
inline AttentionError attention_error(const at::Tensor& got, const at::Tensor& want) {
  const at::Tensor difference = (got.to(at::kDouble) - want).flatten(1).norm(2, 1);
  const at::Tensor size = want.flatten(1).norm(2, 1).clamp_min(1e-3 * std::sqrt(double(want.size(1) * want.size(2))));
  return {(difference.norm() / size.norm()).item<double>(),
          (difference / at::maximum(size, size.mean())).max().item<double>()};
}

}  // namespace hexad::modeling
