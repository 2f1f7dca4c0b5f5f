#include "modeling/op/rope.hpp"

#include <ATen/Functions.h>

#include <cmath>

#include "modeling/error.hpp"
#include "modeling/op/cpu/dispatch.hpp"
#include "modeling/op/cpu/parallel.hpp"
#include "modeling/op/cpu/row_kernels.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/function.hpp"
#include "modeling/op/host_copy.hpp"

namespace hexad::modeling {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kTokenGrain = 16;
constexpr double kTwoPi = 6.283185307179586476925286766559;

// Wavelengths above L / low_freq_factor are stretched by `factor`, those below L / high_freq_factor are kept, the ones
// between are interpolated (L = original context).
at::Tensor llama3_frequencies(const RopeConfig& config, const at::Tensor& inv_freq) {
  const double context = double(config.original_max_position_embeddings);
  const at::Tensor wavelength = kTwoPi / inv_freq;
  const at::Tensor is_long = wavelength > context / config.low_freq_factor;
  const at::Tensor is_short = wavelength < context / config.high_freq_factor;
  const at::Tensor smooth =
      (context / wavelength - config.low_freq_factor) / (config.high_freq_factor - config.low_freq_factor);
  const at::Tensor medium = (1 - smooth) * inv_freq / config.factor + smooth * inv_freq;
  return at::where(is_long, inv_freq / config.factor, at::where(is_short, inv_freq, medium));
}

// "NTK by parts" of the YaRN paper (arXiv 2309.00071): a linear ramp over dimensions between interpolated and
// unchanged.
at::Tensor yarn_frequencies(const RopeConfig& config, int64_t dim, const at::Tensor& inv_freq) {
  const auto dimension_of = [&](double rotations) {
    const double context = double(config.original_max_position_embeddings);
    return dim * std::log(context / (rotations * kTwoPi)) / (2 * std::log(config.theta));
  };
  double low = dimension_of(config.beta_fast), high = dimension_of(config.beta_slow);
  if (config.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, double(dim - 1));
  if (low == high) high += 0.001;
  const at::Tensor ramp = ((at::arange(dim / 2, inv_freq.options()) - low) / (high - low)).clamp(0, 1);
  return inv_freq / config.factor * ramp + inv_freq * (1 - ramp);
}

double attention_factor(const RopeConfig& config) {
  if (config.scaling != RopeScaling::yarn) return 1.0;
  if (config.attention_factor) return *config.attention_factor;
  const double all = config.mscale_all_dim.value_or(0), part = config.mscale.value_or(0);
  if (all != 0 && part != 0)
    return model::yarn_magnitude(config.factor, part) / model::yarn_magnitude(config.factor, all);
  return model::yarn_magnitude(config.factor, 1.0);
}

at::Tensor inverse_frequencies(const RopeConfig& config, int64_t dim) {
  const at::Tensor exponent = at::arange(0, dim, 2, at::TensorOptions(at::kFloat)) / double(dim);
  const at::Tensor inv_freq = at::pow(config.theta, exponent).reciprocal();
  switch (config.scaling) {
    case RopeScaling::none: return inv_freq;
    case RopeScaling::linear: return inv_freq / config.factor;
    case RopeScaling::llama3: return llama3_frequencies(config, inv_freq);
    case RopeScaling::yarn: return yarn_frequencies(config, dim, inv_freq);
  }
  fail("unknown rope scaling {}", int(config.scaling));
}

at::Tensor rotate_on_cpu(const at::Tensor& input, const at::Tensor& cos, const at::Tensor& sin, float direction) {
  const at::Tensor x = input.contiguous();
  at::Tensor y = at::empty_like(x);
  const int64_t heads = x.size(1), half = x.size(2) / 2, stride = heads * half * 2;
  const float *pc = cos.const_data_ptr<float>(), *ps = sin.const_data_ptr<float>();
  cpu::with_elements(x, [&](auto element) {
    using T = decltype(element);
    const T* px = cpu::data<T>(x);
    T* py = cpu::mutable_data<T>(y);
    cpu::parallel_for(x.size(0), kTokenGrain, [&](int64_t begin, int64_t end) {
      cpu::rope_rotate(px + begin * stride, pc + begin * half, ps + begin * half, py + begin * stride, end - begin,
                       heads, half, direction);
    });
  });
  return y;
}

struct RopeOnCpu : Function<RopeOnCpu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
    ctx->save_for_backward({cos, sin});
    return rotate_on_cpu(x, cos, sin, 1.0f);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    return {rotate_on_cpu(grads[0], saved[0], saved[1], -1.0f), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

Rope make_rope(const RopeConfig& config, int64_t head_dim, const at::Tensor& positions) {
  const at::NoGradGuard no_grad;
  const at::Tensor inv_freq = on_device(inverse_frequencies(config, head_dim), positions.device());
  const at::Tensor angles = positions.to(at::kFloat).unsqueeze(1) * inv_freq;
  const double factor = attention_factor(config);
  if (factor == 1.0) return {angles.cos(), angles.sin()};
  return {angles.cos() * factor, angles.sin() * factor};
}

at::Tensor apply_rope(const at::Tensor& x, const Rope& rope) {
  if (cpu::has_kernels(x)) return RopeOnCpu::apply(x, rope.cos, rope.sin);
  const int64_t half = x.size(2) / 2;
  const at::Tensor cos = rope.cos.unsqueeze(1), sin = rope.sin.unsqueeze(1);
  const at::Tensor first = x.slice(2, 0, half), second = x.slice(2, half);
  return at::cat({first * cos - second * sin, second * cos + first * sin}, 2).to(x.scalar_type());
}

std::array<at::Tensor, 3> rotate_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                       const Rope& rope) {
  const bool fits = cuda::has_kernels(q) && q.size(0) > 0 && q.size(2) % 16 == 0 && v.size(2) == q.size(2);
  if (fits) return cuda::rotate_heads(q, k, v, rope);
  return {apply_rope(q, rope), apply_rope(k, rope), v};
}

}  // namespace hexad::modeling
