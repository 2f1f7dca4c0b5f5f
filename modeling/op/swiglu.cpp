#include "modeling/op/swiglu.hpp"

#include <ATen/Functions.h>

#include <algorithm>

#include "modeling/op/cpu/dispatch.hpp"
#include "modeling/op/cpu/parallel.hpp"
#include "modeling/op/cpu/row_kernels.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/function.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kBlock = 4096;  // elements: what a vector's end does to the last bits must not go by threads
constexpr int64_t kGrain = 4;     // blocks a thread takes at least

// Calls body(begin, count) on parts of [0, n) from several threads.
template <typename Body>
void by_blocks(int64_t n, const Body& body) {
  cpu::parallel_for((n + kBlock - 1) / kBlock, kGrain, [&](int64_t first, int64_t last) {
    const int64_t begin = first * kBlock;
    body(begin, std::min(n, last * kBlock) - begin);
  });
}

struct SwigluOnCpu : Function<SwigluOnCpu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate_in, const at::Tensor& up_in) {
    const at::Tensor gate = gate_in.contiguous(), up = up_in.contiguous();
    at::Tensor y = at::empty_like(gate);
    cpu::with_elements(gate, [&](auto element) {
      using T = decltype(element);
      const T *g = cpu::data<T>(gate), *u = cpu::data<T>(up);
      T* out = cpu::mutable_data<T>(y);
      by_blocks(gate.numel(),
                [&](int64_t begin, int64_t count) { cpu::swiglu_forward(g + begin, u + begin, out + begin, count); });
    });
    ctx->save_for_backward({gate, up});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &gate = saved[0], &up = saved[1];
    const at::Tensor grad = grads[0].contiguous();
    at::Tensor grad_gate = at::empty_like(gate), grad_up = at::empty_like(up);
    cpu::with_elements(gate, [&](auto element) {
      using T = decltype(element);
      const T *d = cpu::data<T>(grad), *g = cpu::data<T>(gate), *u = cpu::data<T>(up);
      T *dg = cpu::mutable_data<T>(grad_gate), *du = cpu::mutable_data<T>(grad_up);
      by_blocks(gate.numel(), [&](int64_t begin, int64_t count) {
        cpu::swiglu_backward(d + begin, g + begin, u + begin, dg + begin, du + begin, count);
      });
    });
    return {grad_gate, grad_up};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  if (cuda::has_kernels(gate) && gate.dim() == 2 && gate.size(1) % 8 == 0) return cuda::swiglu(gate, up);
  return cpu::has_kernels(gate) && gate.scalar_type() == up.scalar_type() ? SwigluOnCpu::apply(gate, up)
                                                                          : at::silu(gate) * up;
}

}  // namespace hexad::modeling
