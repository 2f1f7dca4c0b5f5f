#include "modeling/op/function.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <string>

namespace hexad::modeling {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

// LibTorch's node calls a static function of its operator: this one calls on the operator's whose node is being run.
struct AnyOperator {
  static constexpr bool is_traceable = false;
  static inline thread_local FunctionCall::Backward running = nullptr;

  static variable_list backward(AutogradContext* ctx, variable_list grads) { return running(ctx, std::move(grads)); }
};

}  // namespace

class FunctionNode : public torch::autograd::CppNode<AnyOperator> {
 public:
  FunctionNode(const std::type_info& type, FunctionCall::Backward backward) : type_(type), backward_(backward) {}

  variable_list apply(variable_list&& grads) override {
    AnyOperator::running = backward_;  // which is read before anything else can be run by this thread
    return CppNode::apply(std::move(grads));
  }
  std::string name() const override { return c10::demangle(type_.name()); }

 private:
  const std::type_info& type_;
  const FunctionCall::Backward backward_;
};

FunctionCall::FunctionCall(const std::type_info& type, Backward backward)
    : node_(new FunctionNode(type, backward), torch::autograd::deleteNode) {
  if (const auto& functorch = at::functorch::functorchTLSAccessor()) functorch->checkSupportsCppAutogradFunction();
}

std::vector<bool>& FunctionCall::is_variable() { return node_->is_variable_input_; }

AutogradContext* FunctionCall::begin() {
  executable_ = at::GradMode::is_enabled() && torch::autograd::any_variable_requires_grad(inputs_);
  node_->set_ctx_grad_fn(node_);
  node_->set_next_edges(executable_ ? torch::autograd::collect_next_edges(inputs_) : torch::autograd::edge_list());
  node_->clear_input_metadata();
  node_->input_info_.reserve(inputs_.size());
  for (const at::Tensor& input : inputs_) node_->input_info_.emplace_back(input);
  return &node_->ctx_;
}

variable_list FunctionCall::finish(const variable_list& outputs) {
  const auto no_jvp = [](const variable_list&, const variable_list&) -> variable_list {
    TORCH_CHECK(false, "forward-mode gradients of an operator of Hexad: not implemented");
  };
  const std::vector<std::optional<at::Tensor>> raw(outputs.begin(), outputs.end());
  const auto wrapped = torch::autograd::_wrap_outputs(
      inputs_, node_->ctx_.get_non_differentiable(), node_->ctx_.get_and_bump_dirty(), raw,
      executable_ ? node_ : nullptr, no_jvp, {}, [](const at::Tensor& x) { return x.view_as(x); }, false);
  variable_list result;
  result.reserve(wrapped.size());
  for (const std::optional<at::Tensor>& output : wrapped) result.push_back(*output);
  if (executable_) {
    for (const at::Tensor& output : result) node_->output_info_.emplace_back(output);
    node_->save_variables_to_ctx();
  }
  return result;
}

}  // namespace hexad::modeling
