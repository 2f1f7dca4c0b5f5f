// Gradients of experts' weights by mma.sync, which every card since compute capability 8.0 has: CUTLASS's grouped
// product of Ampere, whose thread blocks find their group and tile on the device.
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm_grouped.h>
#include <cutlass/gemm/kernel/default_gemm_grouped.h>

#include "modeling/op/cuda/architecture.hpp"
#include "modeling/op/cuda/cutlass_status.cuh"
#include "modeling/op/cuda/expert/expert_kernels.hpp"
#include "modeling/op/cuda/expert/hopper/grouped_gradient.hpp"

namespace hexad::modeling::cuda {
namespace {

using Half = cutlass::bfloat16_t;
using cutlass::gemm::GemmCoord, cutlass::gemm::GemmShape;

// sum [out, in] += grad^T [out, rows] x [rows, in]: both are read along their rows, so any number of rows will do.
using Product = cutlass::gemm::device::GemmGrouped<cutlass::gemm::kernel::DefaultGemmGrouped<
    Half, cutlass::layout::ColumnMajor, cutlass::ComplexTransform::kNone, 8, Half, cutlass::layout::RowMajor,
    cutlass::ComplexTransform::kNone, 8, float, cutlass::layout::RowMajor, float, cutlass::arch::OpClassTensorOp,
    cutlass::arch::Sm80, GemmShape<128, 128, 32>, GemmShape<64, 64, 32>, GemmShape<16, 8, 16>,
    cutlass::epilogue::thread::LinearCombination<float, 4, float, float>,
    cutlass::gemm::threadblock::GemmBatchedIdentityThreadblockSwizzle, /*stages=*/4,
    cutlass::gemm::kernel::GroupScheduleMode::kDeviceOnly>::GemmKernel>;

constexpr int64_t kAlignment = 256;  // of the arrays in the scratch memory

// The arrays that describe the groups, one of each (expert, part).
struct Scratch {
  Half **grad, **x;
  float** sums;
  int64_t *grad_strides, *x_strides, *sum_strides;
  GemmCoord* sizes;
  int64_t bytes = 0;

  Scratch(void* memory, int groups) {
    char* const begin = static_cast<char*>(memory);
    const auto take = [&](auto*& array) {
      array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(begin + bytes);
      bytes += (int64_t(sizeof(*array)) * groups + kAlignment - 1) / kAlignment * kAlignment;
    };
    take(grad), take(x), take(sums), take(grad_strides), take(x_strides), take(sum_strides), take(sizes);
  }
};

__global__ void describe_groups(GroupedGradientCall call, Scratch to) {
  const int group = blockIdx.x * blockDim.x + threadIdx.x;
  if (group >= call.experts * call.parts) return;
  const int expert = group / call.parts, part = group % call.parts, columns = call.out / call.parts;
  const int begin = expert > 0 ? call.ends[expert - 1] : 0, rows = call.ends[expert] - begin;
  to.grad[group] = static_cast<Half*>(const_cast<void*>(call.grad)) + begin * call.grad_stride + part * columns;
  to.x[group] = static_cast<Half*>(const_cast<void*>(call.x)) + begin * call.x_stride;
  to.sums[group] = call.sum + expert * call.sum_stride + part * call.part_stride;
  to.grad_strides[group] = call.grad_stride, to.x_strides[group] = call.x_stride, to.sum_strides[group] = call.in;
  // Without rows there is nothing to add, and no tile.
  to.sizes[group] = rows > 0 ? GemmCoord(columns, call.in, rows) : GemmCoord(0, 0, 0);
}

constexpr const char* kOperation = "grouped weight gradient";

void add_generic_gradient(const GroupedGradientCall& call, void* memory, CUstream_st* stream) {
  const int groups = call.experts * call.parts;
  const Scratch s(memory, groups);
  describe_groups<<<(groups + 127) / 128, 128, 0, stream>>>(call, s);
  Product product;
  typename Product::Arguments arguments(s.sizes, groups, Product::sufficient(), {1.0f, 1.0f}, s.grad, s.x, s.sums,
                                        s.sums, s.grad_strides, s.x_strides, s.sum_strides, s.sum_strides);
  require_cutlass(product.initialize(arguments, nullptr, stream), kOperation, "cannot set it up");
  require_cutlass(product.run(stream), kOperation, "cannot run it");
}

}  // namespace

int64_t grouped_gradient_scratch(const GroupedGradientCall& call) {
  if (runs_hopper_kernels(call.device)) return hopper_gradient_scratch(call);
  return Scratch(nullptr, call.experts * call.parts).bytes;
}

void add_grouped_gradient(const GroupedGradientCall& call, void* scratch, CUstream_st* stream) {
  if (call.experts == 0) return;
  if (runs_hopper_kernels(call.device)) return add_hopper_gradient(call, scratch, stream);
  add_generic_gradient(call, scratch, stream);
}

}  // namespace hexad::modeling::cuda
