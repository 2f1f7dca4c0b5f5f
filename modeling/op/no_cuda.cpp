// A build without CUDA: no tensor ever lies on a GPU, so nothing here is reached but has_kernels
// and the questions what fits.
#include "modeling/error.hpp"
#include "modeling/op/cuda/attention/cudnn_attention.hpp"
#include "modeling/op/cuda/batch_invariant.hpp"
#include "modeling/op/cuda/expert/expert_operators.hpp"
#include "modeling/op/cuda/operators.hpp"

namespace hexad::modeling::cuda {
namespace {

[[noreturn]] void absent() { fail("this build has no CUDA kernels: configure it with -DHEXAD_CUDA=ON"); }

}  // namespace

bool has_kernels(const at::Tensor&) { return false; }
int capability(at::Device) { absent(); }
bool fits_norm(const at::Tensor&, const at::Tensor&) { return false; }
at::Tensor rms_norm(const at::Tensor&, const at::Tensor&, double) { absent(); }
std::array<at::Tensor, 2> add_rms_norm(const at::Tensor&, const at::Tensor&, const at::Tensor&, double) { absent(); }
at::Tensor residual_add(const at::Tensor&, const at::Tensor&) { absent(); }
at::Tensor swiglu(const at::Tensor&, const at::Tensor&) { absent(); }
std::array<at::Tensor, 3> rotate_heads(const at::Tensor&, const at::Tensor&, const at::Tensor&, const Rope&) {
  absent();
}
at::Tensor embed_rows(const at::Tensor&, const at::Tensor&) { absent(); }
RowStatistics softmax_statistics(const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
void softmax_gradient(const at::Tensor&, const RowStatistics&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                      double, at::Tensor) {
  absent();
}
bool fits_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&) { return false; }
at::Tensor packed_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                            const std::shared_ptr<const RaggedRows>&, int64_t) {
  absent();
}
at::Tensor batch_invariant_attention(const at::Tensor&, const at::Tensor&, const at::Tensor&, const PackedLayout&,
                                     int64_t) {
  absent();
}
at::Tensor invariant_linear(const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
void invariant_linear_out(at::Tensor, const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
void adam_step(const AdamStep&, const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
               const at::Tensor&) {
  absent();
}
void accumulate_product(const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
bool fits_expert_sort(const at::Tensor&, int64_t) { return false; }
ExpertOrder sort_by_expert(const at::Tensor&, int64_t) { absent(); }
bool fits_expert_rows(const at::Tensor&) { return false; }
at::Tensor spread_rows(const at::Tensor&, const at::Tensor&) { absent(); }
at::Tensor sum_rows(const at::Tensor&, const at::Tensor&) { absent(); }
at::Tensor weighted_swiglu(const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
WeightedSwigluGradient weighted_swiglu_gradient(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                const at::Tensor&) {
  absent();
}
bool add_grouped_gradient(const std::vector<at::Tensor>&, const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  return false;
}
bool add_products(const std::vector<at::Tensor>&, const at::Tensor&, const at::Tensor&) { return false; }
void fp8_cast_rows(const at::Tensor&, const at::Tensor&, const at::Tensor&) { absent(); }
void fp8_cast_stack(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, bool) { absent(); }
at::Tensor fp8_largest(const std::vector<at::Tensor>&) { absent(); }
void fp8_cast(const at::Tensor&, const Fp8Range&, const at::Tensor&, const at::Tensor&) { absent(); }
void fp8_cast_scaled(const at::Tensor&, const Fp8Tensor&) { absent(); }
at::Tensor fp8_scaled_product(const Fp8Matrix&, const Fp8Matrix&, const at::Tensor&, at::ScalarType) { absent(); }
void accumulate_fp8_product(const at::Tensor&, const Fp8Matrix&, const Fp8Matrix&) { absent(); }

}  // namespace hexad::modeling::cuda
