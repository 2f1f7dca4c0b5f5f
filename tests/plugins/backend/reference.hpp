// The plain way: one process, whole weights, a graph a sequence or a micro-batch, textbook log-softmax and AdamW.
#pragma once
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "modeling/family/batch_attention.hpp"
#include "modeling/parallel/optimizer.hpp"
#include "tests/plugins/backend/tiny_model.hpp"

namespace backend_test {

inline at::Tensor integers(const std::vector<int64_t>& values) { return at::tensor(values, at::kLong); }

// fp32 at least.
inline at::Tensor wide(const at::Tensor& x) { return x.element_size() < 4 ? x.to(at::kFloat) : x; }

struct Reference {
  Reference(const std::filesystem::path& dir, Weights all)
      : config(hexad::modeling::load_model_config(dir)), weights(std::move(all)) {
    for (const auto& info : hexad::modeling::weight_table(config))
      if (!info.trainable) frozen.insert(info.hf_name);
  }
  virtual ~Reference() = default;

  hexad::modeling::ModelConfig config;
  Weights weights;                     // of one type, and on `device`: so is all that is computed
  std::set<std::string> frozen;        // have no gradient and never move
  Weights grads, exp_avg, exp_avg_sq;  // grads: fp32 at least, on the host
  int64_t steps = 0;
  std::vector<double> losses;  // of the micro-batches of the last train: their sum may cancel
  at::Device device = at::kCPU;

  // Hidden states [T, H] of a micro-batch, after the final norm.
  virtual at::Tensor hidden(const Weights& with, const at::Tensor& ids, const at::Tensor& positions,
                            hexad::modeling::Attention& attention, const hexad::modeling::MoeRuns& runs) const {
    const auto lookup = [&](const std::string& name) { return with.at(name); };
    return hexad::modeling::forward_hidden(config, lookup, ids, positions, attention, {}, runs);
  }

  // Log-probs and entropy of the tokens of a micro-batch, fp32 at least, 0 at the first of each sequence.
  std::pair<at::Tensor, at::Tensor> outputs(const Weights& with, const Pack& pack, double temperature,
                                            const hexad::modeling::MoeRuns& runs = {}) const {
    std::vector<int64_t> ids, offsets = {0}, positions;
    for (const Sequence& sequence : pack) {
      ids.insert(ids.end(), sequence.ids.begin(), sequence.ids.end());
      for (size_t i = 0; i < sequence.ids.size(); ++i) positions.push_back(static_cast<int64_t>(i));
      offsets.push_back(static_cast<int64_t>(ids.size()));
    }
    hexad::modeling::PackedAttention attention(config, hexad::modeling::packed_layout(integers(offsets), device));
    const at::Tensor states = hidden(with, integers(ids).to(device), integers(positions).to(device), attention, runs);
    const at::Tensor logits = at::mm(states, with.at(hexad::modeling::head_weight_name(config)).t());
    const at::Tensor all = at::log_softmax(wide(logits) / temperature, -1), first = at::zeros({1}, all.options());
    std::vector<at::Tensor> logprobs, entropy;
    for (size_t s = 0; s < pack.size(); ++s) {
      const at::Tensor rows = all.slice(0, offsets[s], offsets[s + 1] - 1);
      const at::Tensor next = integers(pack[s].ids).slice(0, 1).unsqueeze(1).to(device);
      logprobs.insert(logprobs.end(), {first, rows.gather(1, next).squeeze(1)});
      entropy.insert(entropy.end(), {first, -(rows.exp() * rows).sum(-1)});
    }
    return {at::cat(logprobs), at::cat(entropy)};
  }
  std::pair<at::Tensor, at::Tensor> outputs(const Weights& with, const Sequence& sequence, double temperature) const {
    return outputs(with, Pack{sequence}, temperature);
  }

  // Adds the gradients of the loss over micro-batches to grads and returns the loss.
  double train(const std::vector<Pack>& packs, double normalizer, double temperature,
               const std::function<hexad::modeling::MoeRuns(const Pack&)>& runs_of = {}) {
    const at::AutoGradMode mode(true);
    Weights leaves;
    std::vector<at::Tensor> inputs;
    for (const auto& [name, tensor] : weights) {
      leaves[name] = tensor.detach().requires_grad_(!frozen.count(name));
      if (!frozen.count(name)) inputs.push_back(leaves[name]);
    }
    losses.clear();
    for (const Pack& pack : packs) {
      const auto [logprobs, entropy] =
          outputs(leaves, pack, temperature, runs_of ? runs_of(pack) : hexad::modeling::MoeRuns());
      std::vector<float> weight;
      for (const Sequence& s : pack) weight.insert(weight.end(), s.weight.begin(), s.weight.end());
      const Loss loss = loss_of(logprobs.detach().cpu(), entropy.detach().cpu(), at::tensor(weight), normalizer);
      losses.push_back(loss.value);
      if (std::all_of(pack.begin(), pack.end(), [](const Sequence& s) { return s.ids.size() < 2; })) continue;
      const auto found = torch::autograd::grad({logprobs, entropy}, inputs,
                                               {loss.grad_logprobs.to(device), loss.grad_entropy.to(device)}, false,
                                               false, /*allow_unused=*/true);
      add_gradients(found);
    }
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }
  // Of one sequence each.
  double train(const std::vector<Sequence>& sequences, double normalizer, double temperature) {
    std::vector<Pack> packs;
    for (const Sequence& sequence : sequences) packs.push_back({sequence});
    return train(packs, normalizer, temperature);
  }

  // `found`: of the weights that are not frozen, in the order of names; undefined where the loss does not see one.
  void add_gradients(const std::vector<at::Tensor>& found) {
    size_t i = 0;
    for (const auto& [name, tensor] : weights) {
      if (frozen.count(name)) continue;
      at::Tensor& sum = grads[name];
      if (!sum.defined()) sum = at::zeros_like(wide(tensor), at::kCPU);
      if (found[i].defined()) sum.add_(found[i].cpu());
      ++i;
    }
  }

  bool decays_matrices_only = false;  // as Megatron's optimizer does

  double grad_norm() const { return norm_of(grads); }

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
