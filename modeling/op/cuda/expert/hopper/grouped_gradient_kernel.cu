#include "modeling/op/cuda/expert/hopper/grouped_gradient.hpp"

#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/operations.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/group_array_problem_shape.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include "modeling/op/cuda/cutlass_status.cuh"

namespace hexad::modeling::cuda {
namespace {

using cute::Int;

// The sums lie as [out, in]; as a column-major matrix of M = in rows and N = out columns it is x^T grad. So the width
// of a tile can follow the rows of a part, of which FSDP leaves few.
template <int kColumns>
struct Product {
  using Half = cutlass::bfloat16_t;
  using InLayout = cutlass::layout::ColumnMajor;
  using GradLayout = cutlass::layout::RowMajor;
  using SumLayout = cutlass::layout::ColumnMajor;
  using Tile = cute::Shape<Int<128>, Int<kColumns>, Int<64>>;
  using Cluster = cute::Shape<Int<2>, Int<1>, Int<1>>;
  using Shape = cutlass::gemm::GroupProblemShape<cute::Shape<int, int, int>>;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, float, SumLayout*, 4, float, SumLayout*, 4,
      cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative,
      cutlass::epilogue::fusion::LinearCombination<float, float>>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, InLayout*, 8, Half, GradLayout*, 8, float, Tile,
      Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
      cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape, Mainloop, Epilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
  using InStride = typename Kernel::InternalStrideA;
  using GradStride = typename Kernel::InternalStrideB;
  using SumStride = typename Kernel::InternalStrideD;
  using Size = typename Shape::UnderlyingProblemShape;
};

constexpr int64_t kAlignment = 256;  // of the arrays in the scratch memory

// The arrays that describe the groups, one of each (expert, part), and what CUTLASS wants behind them.
template <int kColumns>
struct Scratch {
  using P = Product<kColumns>;
  const typename P::Half **in, **grad;
  float** sums;
  typename P::InStride* in_strides;
  typename P::GradStride* grad_strides;
  typename P::SumStride* sum_strides;
  typename P::Size* sizes;
  void* rest;
  int64_t bytes = 0;

  Scratch(void* memory, int groups) {
    char* const begin = static_cast<char*>(memory);
    const auto take = [&](auto*& array) {
      array = reinterpret_cast<std::remove_reference_t<decltype(array)>>(begin + bytes);
      bytes += (int64_t(sizeof(*array)) * groups + kAlignment - 1) / kAlignment * kAlignment;
    };
    take(in), take(grad), take(sums), take(in_strides), take(grad_strides), take(sum_strides), take(sizes);
    rest = begin + bytes;
  }
};

template <int kColumns>
__global__ void describe_groups(GroupedGradientCall call, Scratch<kColumns> to) {
  using P = Product<kColumns>;
  const int group = blockIdx.x * blockDim.x + threadIdx.x;
  if (group >= call.experts * call.parts) return;
  const int expert = group / call.parts, part = group % call.parts, columns = call.out / call.parts;
  const int begin = expert > 0 ? call.ends[expert - 1] : 0, rows = call.ends[expert] - begin;
  to.in[group] = static_cast<const typename P::Half*>(call.x) + begin * call.x_stride;
  to.grad[group] = static_cast<const typename P::Half*>(call.grad) + begin * call.grad_stride + part * columns;
  to.sums[group] = call.sum + expert * call.sum_stride + part * call.part_stride;
  cute::get<1>(to.in_strides[group] = {}) = call.x_stride;
  cute::get<1>(to.grad_strides[group] = {}) = call.grad_stride;
  cute::get<1>(to.sum_strides[group] = {}) = call.in;
  // Without rows there is nothing to add, and no tile.
  to.sizes[group] = rows > 0 ? typename P::Size(call.in, columns, rows) : typename P::Size(0, 0, 0);
}

template <int kColumns>
typename Product<kColumns>::Gemm::Arguments arguments(const GroupedGradientCall& call, const Scratch<kColumns>& s) {
  typename Product<kColumns>::Gemm::Arguments result{
      cutlass::gemm::GemmUniversalMode::kGrouped,
      {call.experts * call.parts, s.sizes, nullptr},
      {s.in, s.in_strides, s.grad, s.grad_strides},
      {{}, const_cast<const float**>(s.sums), s.sum_strides, s.sums, s.sum_strides}};
  result.epilogue.thread.alpha = 1.0f;
  result.epilogue.thread.beta = 1.0f;
  result.hw_info.device_id = call.device;
  result.hw_info.sm_count = call.processors;
  return result;
}

template <int kColumns>
int64_t scratch_bytes(const GroupedGradientCall& call) {
  const Scratch<kColumns> scratch(nullptr, call.experts * call.parts);
  return scratch.bytes + static_cast<int64_t>(Product<kColumns>::Gemm::get_workspace_size(arguments(call, scratch)));
}

constexpr const char* kOperation = "grouped weight gradient";

template <int kColumns>
void run(const GroupedGradientCall& call, void* memory, CUstream_st* stream) {
  const int groups = call.experts * call.parts;
  const Scratch<kColumns> scratch(memory, groups);
  describe_groups<kColumns><<<(groups + 127) / 128, 128, 0, stream>>>(call, scratch);
  typename Product<kColumns>::Gemm gemm;
  const auto given = arguments(call, scratch);
  require_cutlass(gemm.can_implement(given), kOperation, "cannot implement it");
  require_cutlass(gemm.initialize(given, scratch.rest, stream), kOperation, "cannot set it up");
  require_cutlass(gemm.run(stream), kOperation, "cannot run it");
}

// The width of tiles that leaves least of them empty; the wider where both do alike.
bool wide_tiles(const GroupedGradientCall& call) {
  const int columns = call.out / call.parts;
  const auto covered = [&](int width) { return (columns + width - 1) / width * width; };
  return covered(256) <= covered(192);
}

}  // namespace

int64_t hopper_gradient_scratch(const GroupedGradientCall& call) {
  return wide_tiles(call) ? scratch_bytes<256>(call) : scratch_bytes<192>(call);
}

void add_hopper_gradient(const GroupedGradientCall& call, void* scratch, CUstream_st* stream) {
  wide_tiles(call) ? run<256>(call, scratch, stream) : run<192>(call, scratch, stream);
}

}  // namespace hexad::modeling::cuda
