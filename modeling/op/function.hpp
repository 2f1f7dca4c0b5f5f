// torch::autograd::Function, with the same contract for forward and backward: see
// torch/csrc/autograd/custom_function.h. LibTorch's is a class of nodes for each operator, with what torch.compile
// would want of it; here all of them share one, which spares half a second of compile time each and four a translation
// unit.
#pragma once
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <typeinfo>
#include <utility>
#include <vector>

namespace hexad::modeling {

class FunctionNode;

// One call of an operator: its inputs, then begin(), its forward without gradients, then finish().
class FunctionCall {
 public:
  using Backward = torch::autograd::variable_list (*)(torch::autograd::AutogradContext*,
                                                      torch::autograd::variable_list&&);

  FunctionCall(const std::type_info& type, Backward backward);

  std::vector<bool>& is_variable();  // by argument of forward; tensors of a list each
  torch::autograd::variable_list& inputs() { return inputs_; }
  torch::autograd::AutogradContext* begin();
  // The outputs, in the graph if a gradient is wanted.
  torch::autograd::variable_list finish(const torch::autograd::variable_list& outputs);
  at::Tensor finish(const at::Tensor& output) { return finish(torch::autograd::variable_list{output})[0]; }

 private:
  std::shared_ptr<FunctionNode> node_;
  torch::autograd::variable_list inputs_;
  bool executable_ = false;
};

template <class T>
struct Function {
  template <typename X = T, typename... Args>
  static torch::autograd::forward_t<X, Args...> apply(Args&&... args) {
    FunctionCall call(typeid(X), [](torch::autograd::AutogradContext* ctx, torch::autograd::variable_list&& grads) {
      return X::backward(ctx, std::move(grads));
    });
    torch::autograd::extract_vars(call.is_variable(), call.inputs(), args...);
    torch::autograd::AutogradContext* const ctx = call.begin();
    torch::autograd::forward_t<X, Args...> outputs;
    {
      const at::AutoGradMode off(false);
      outputs = X::forward(ctx, std::forward<Args>(args)...);
    }
    return call.finish(outputs);
  }
};

}  // namespace hexad::modeling
