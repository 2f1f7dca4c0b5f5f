// The plain way: one process, whole weights, one graph a sequence, textbook log-softmax and AdamW.
#pragma once
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <set>

#include "modeling/family/batch_attention.hpp"
#include "modeling/parallel/optimizer.hpp"
#include "tests/plugins/backend/tiny_model.hpp"

namespace backend_test {

struct Reference {
  Reference(const std::filesystem::path& dir, Weights all)
      : config(hexad::modeling::load_model_config(dir)), weights(std::move(all)) {
    for (const auto& info : hexad::modeling::weight_table(config))
      if (!info.trainable) frozen.insert(info.hf_name);
  }

  hexad::modeling::ModelConfig config;
  Weights weights;               // fp32
  std::set<std::string> frozen;  // have no gradient and never move
  Weights grads, exp_avg, exp_avg_sq;
  int64_t steps = 0;
  double loss_magnitude = 0;  // of the last train: the absolute losses of its sequences added up, whose sum may cancel

  // Log-probs and entropy of one sequence, 0 at its first token.
  std::pair<at::Tensor, at::Tensor> outputs(const Weights& with, const Sequence& sequence, double temperature) const {
    const at::Tensor ids = at::tensor(sequence.ids, at::kLong);
    const auto offsets = at::tensor({int64_t{0}, ids.size(0)}, at::kLong);
    hexad::modeling::PackedAttention attention(config, hexad::modeling::packed_layout(offsets, at::kCPU));
    const auto lookup = [&](const std::string& name) { return with.at(name); };
    const at::Tensor hidden =
        hexad::modeling::forward_hidden(config, lookup, ids, at::arange(ids.size(0), at::kLong), attention);
    const at::Tensor logits = at::mm(hidden, with.at(hexad::modeling::head_weight_name(config)).t()) / temperature;
    const at::Tensor all = at::log_softmax(logits, -1).slice(0, 0, -1);
    const at::Tensor first = at::zeros({1});
    const at::Tensor entropy = -(all.exp() * all).sum(-1);
    return {at::cat({first, all.gather(1, ids.slice(0, 1).unsqueeze(1)).squeeze(1)}), at::cat({first, entropy})};
  }

  // Adds the gradients of the loss over `sequences` to grads and returns the loss.
  double train(const std::vector<Sequence>& sequences, double normalizer, double temperature) {
    const at::AutoGradMode mode(true);
    Weights leaves;
    std::vector<at::Tensor> inputs;
    for (const auto& [name, tensor] : weights) {
      leaves[name] = tensor.detach().requires_grad_(!frozen.count(name));
      if (!frozen.count(name)) inputs.push_back(leaves[name]);
    }
    double total = 0;
    loss_magnitude = 0;
    for (const Sequence& sequence : sequences) {
      const auto [logprobs, entropy] = outputs(leaves, sequence, temperature);
      const Loss loss = loss_of(logprobs.detach(), entropy.detach(), at::tensor(sequence.weight), normalizer);
      total += loss.value;
      loss_magnitude += std::abs(loss.value);
      if (sequence.ids.size() < 2) continue;
      const auto found = torch::autograd::grad({logprobs, entropy}, inputs, {loss.grad_logprobs, loss.grad_entropy},
                                               false, false, /*allow_unused=*/true);
      add_gradients(found);
    }
    return total;
  }

  // `found`: of the weights that are not frozen, in the order of names; undefined where the loss does not see one.
  void add_gradients(const std::vector<at::Tensor>& found) {
    size_t i = 0;
    for (const auto& [name, tensor] : weights) {
      if (frozen.count(name)) continue;
      at::Tensor& sum = grads[name];
      if (!sum.defined()) sum = at::zeros_like(tensor);
      if (found[i].defined()) sum.add_(found[i]);
      ++i;
    }
  }

  bool decays_matrices_only = false;  // as Megatron's optimizer does
  at::ScalarType dtype = at::kFloat;  // of weights, and so of all that is computed

  double grad_norm() const {
    double squares = 0;
    for (const auto& [name, grad] : grads) squares += std::pow(grad.to(at::kDouble).norm().item<double>(), 2);
    return std::sqrt(squares);
  }

  // Another optimizer's update of whole tensors, after clip_grad_norm_.
  void step(hexad::modeling::Optimizer& optimizer, double lr, double decay, double max_norm) {
    const double coefficient = std::min(1.0, max_norm / (grad_norm() + 1e-6));
    std::vector<at::Tensor> params, scaled;
    for (const auto& [name, grad] : grads) params.push_back(weights.at(name)), scaled.push_back(grad * coefficient);
    optimizer.step(params, scaled, lr, decay);
    grads.clear();
  }

  // torch.optim.AdamW with betas (0.9, 0.999), eps 1e-8, after clip_grad_norm_.
  void step(double lr, double decay, double max_norm) {
    ++steps;
    const double coefficient = std::min(1.0, max_norm / (grad_norm() + 1e-6));
    for (auto& [name, weight] : weights) {
      if (frozen.count(name)) continue;
      const at::Tensor grad = grads[name] * coefficient;
      at::Tensor &average = exp_avg[name], &square = exp_avg_sq[name];
      if (!average.defined()) average = at::zeros_like(weight), square = at::zeros_like(weight);
      const bool is_matrix = weight.dim() > 1 && !name.ends_with("bias");
      if (is_matrix || !decays_matrices_only) weight.mul_(1 - lr * decay);
      average.mul_(0.9).add_(grad, 0.1);
      square.mul_(0.999).addcmul_(grad, grad, 0.001);
      const double step = static_cast<double>(steps);
      const at::Tensor root = (square / (1 - std::pow(0.999, step))).sqrt() + 1e-8;
      weight.addcdiv_(average, root, -lr / (1 - std::pow(0.9, step)));
    }
    grads.clear();
  }
};

}  // namespace backend_test
