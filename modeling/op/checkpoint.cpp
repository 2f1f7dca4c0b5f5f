#include "modeling/op/checkpoint.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "modeling/op/function.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A tensor that shares its memory with nothing else, so that the memory can be freed.
at::Tensor owned(const at::Tensor& tensor) {
  const bool whole =
      tensor.is_contiguous() && tensor.storage().nbytes() == tensor.nbytes() && tensor.storage().use_count() == 1;
  return whole ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

void set_memory(const c10::Storage& storage, c10::DataPtr memory, size_t bytes) {
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(memory));
  storage.unsafeGetStorageImpl()->set_nbytes(bytes);
}

// The memory of `of`, kept alive by the pointer.
c10::DataPtr shared_memory(const c10::Storage& of) {
  auto* const keeper = new c10::Storage(of);
  return {of.mutable_data(), keeper, [](void* kept) { delete static_cast<c10::Storage*>(kept); }, of.device()};
}

}  // namespace

struct DiscardedOutputs::State {
  Run run;
  Tensors activations, weights;
  bool owns_outputs = false;            // they share their memory with nothing else
  std::vector<c10::Storage> discarded;  // of the outputs, in order; empty: they stay
  Tensors inputs, results;              // of the second run: leaves, then the ends of its graph

  // The second run. Once: what it makes is taken by the backward pass.
  void run_again() {
    if (!results.empty()) return;
    const at::AutoGradMode with_grad(true);
    inputs.clear();
    for (const at::Tensor& x : activations) inputs.push_back(x.detach().requires_grad_(x.requires_grad()));
    results = run(inputs);
    for (size_t i = 0; i < discarded.size(); ++i) {
      // As the first run's outputs were laid out.
      const at::Tensor result = results[i].detach().contiguous();
      const at::Tensor whole = result.storage_offset() == 0 ? result : result.clone(at::MemoryFormat::Contiguous);
      set_memory(discarded[i], shared_memory(whole.storage()), whole.nbytes());
    }
  }
};

namespace {

using State = DiscardedOutputs::State;

// The state as a node of the graph keeps it.
struct Kept : torch::CustomClassHolder {
  explicit Kept(std::shared_ptr<State> it) : state(std::move(it)) {}
  std::shared_ptr<State> state;
};

struct Rerun : Function<Rerun> {
  static variable_list forward(AutogradContext* ctx, at::TensorList activations, at::TensorList weights,
                               const std::shared_ptr<State>& state) {
    ctx->saved_data["state"] = c10::IValue::make_capsule(c10::make_intrusive<Kept>(state));
    ctx->saved_data["count"] = static_cast<int64_t>(activations.size() + weights.size());
    variable_list outputs = state->run(activations.vec());  // without a graph
    if (state->owns_outputs)
      for (at::Tensor& output : outputs) output = owned(output);
    return outputs;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto state = c10::static_intrusive_pointer_cast<Kept>(ctx->saved_data["state"].toCapsule())->state;
    state->run_again();
    variable_list results = std::exchange(state->results, {}), wanted, ends, end_grads;
    std::vector<size_t> places;
    const auto want = [&](const at::Tensor& input, size_t place) {
      if (input.requires_grad()) wanted.push_back(input), places.push_back(place);
    };
    const size_t activations = state->inputs.size();
    for (size_t i = 0; i < activations; ++i) want(state->inputs[i], i);
    for (size_t i = 0; i < state->weights.size(); ++i) want(state->weights[i], activations + i);
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].requires_grad()) ends.push_back(results[i]), end_grads.push_back(grads[i]);
    const variable_list found = torch::autograd::grad(ends, wanted, end_grads, /*retain_graph=*/false,
                                                      /*create_graph=*/false, /*allow_unused=*/true);
    variable_list all(static_cast<size_t>(ctx->saved_data["count"].toInt()) + 1);
    for (size_t i = 0; i < places.size(); ++i) all[places[i]] = found[i];
    state->inputs.clear();
    state->activations.clear();
    state->discarded.clear();
    return all;
  }
};

bool wants_gradient(const at::Tensor& x) { return x.defined() && x.requires_grad(); }

// Null where no gradient is wanted.
std::shared_ptr<State> make_state(Run run, const Tensors& activations, const Tensors& weights) {
  const auto any = [](const Tensors& tensors) { return std::any_of(tensors.begin(), tensors.end(), wants_gradient); };
  if (!at::GradMode::is_enabled() || !(any(activations) || any(weights))) return {};
  auto state = std::make_shared<State>();
  state->run = std::move(run);
  state->activations = activations;
  std::copy_if(weights.begin(), weights.end(), std::back_inserter(state->weights), wants_gradient);
  return state;
}

Tensors first_run(const std::shared_ptr<State>& state) {
  return Rerun::apply(at::TensorList(state->activations), at::TensorList(state->weights), state);
}

}  // namespace

Tensors checkpoint(Run run, const Tensors& activations, const Tensors& weights) {
  const auto state = make_state(run, activations, weights);
  return state ? first_run(state) : run(activations);
}

DiscardedOutputs::DiscardedOutputs(Run run, const Tensors& activations, const Tensors& weights)
    : state_(make_state(run, activations, weights)) {
  if (state_) state_->owns_outputs = true;
  outputs_ = state_ ? first_run(state_) : run(activations);
}

void DiscardedOutputs::discard_until(const at::Tensor& consumer) {
  if (!state_) return;
  for (const at::Tensor& output : outputs_) {
    state_->discarded.push_back(output.storage());
    set_memory(output.storage(), c10::DataPtr(nullptr, output.device()), 0);
  }
  outputs_.clear();
  consumer.register_hook([state = state_](const at::Tensor& grad) {
    state->run_again();
    return grad;
  });
}

}  // namespace hexad::modeling
