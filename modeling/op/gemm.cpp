#include "modeling/op/gemm.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/record_function.h>

#include "modeling/op/cpu/isa.hpp"

// Exported by libtorch_cpu, declared in a header that its package leaves out. out = alpha a b + beta out.
namespace at::native {
void mkldnn_matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& out, float beta, float alpha);
}  // namespace at::native

namespace hexad::modeling {
namespace {

// Weights of fewer elements are not worth the making of oneDNN's code, milliseconds for every new shape.
constexpr int64_t kLeastWeight = 1 << 18;

bool is_transposed(const at::Tensor& x) { return !x.is_contiguous() && x.t().is_contiguous(); }
bool is_dense(const at::Tensor& x) { return x.is_contiguous() || x.t().is_contiguous(); }

// What was measured on one and two cores of Zen 4: oneDNN packs a transposed weight, which pays for a few rows, where
// it does not, for many, and for a vocabulary; and sums of outer products pay when there are many of them.
bool onednn_is_faster(const at::Tensor& a, const at::Tensor& b) {
  const int64_t rows = a.size(0), inner = a.size(1), columns = b.size(1);
  if (is_transposed(a)) return rows * columns >= kLeastWeight && inner >= 256;
  if (inner * columns < kLeastWeight) return false;
  return !is_transposed(b) || rows < 16 || rows >= 128 || columns >= 8192;
}

// ATen's call of oneDNN throws on x86 CPUs without AVX-512, for fp32 too (ATen/native/mkldnn/Matmul.cpp). ATen's own
// product serves there.
bool by_onednn(const at::Tensor& a, const at::Tensor& b) {
  const auto fits = [](const at::Tensor& x) {
    return x.is_cpu() && x.scalar_type() == at::kFloat && x.dim() == 2 && x.numel() > 0 && is_dense(x);
  };
  const at::Context& context = at::globalContext();
  return fits(a) && fits(b) && cpu::isa() == cpu::Isa::v4 && context.hasMKLDNN() && context.userEnabledMkldnn() &&
         onednn_is_faster(a, b);
}

void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, float beta) {
  RECORD_FUNCTION("hexad::gemm", (std::vector<c10::IValue>{a, b}));
  at::native::mkldnn_matmul(a, b, out, beta, 1);
}

}  // namespace

at::Tensor gemm(const at::Tensor& a, const at::Tensor& b) {
  if (!by_onednn(a, b)) return at::mm(a, b);
  const at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  multiply(out, a, b, 0);
  return out;
}

void gemm_out(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (by_onednn(a, b) && out.is_contiguous()) return multiply(out, a, b, 0);
  at::Tensor target = out;
  at::mm_out(target, a, b);
}

void add_gemm(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  by_onednn(a, b) && sum.is_contiguous() ? multiply(sum, a, b, 1) : void(sum.addmm_(a, b));
}

at::Tensor gemm_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!by_onednn(x, weight.t())) return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
  const at::Tensor out = gemm(x, weight.t());
  return bias.defined() ? out.add_(bias) : out;
}

}  // namespace hexad::modeling
