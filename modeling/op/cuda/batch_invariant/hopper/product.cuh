// One tile size of the product, as CUTLASS's kernel for Hopper (wgmma, TMA, warps that load and warps that multiply).
// The weight is the left factor: its rows fill tiles of 64 and more whatever the batch, and few rows of x make a narrow
// tile. Nothing splits the sum over k.
#pragma once
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/operations.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>

#include <type_traits>

#include "modeling/op/cuda/batch_invariant/hopper/product.hpp"
#include "modeling/op/cuda/cutlass_status.cuh"

namespace hexad::modeling::cuda {

// Rows of the weight, rows of x and terms of the sum that a thread block takes at a time. A cluster of blocks shares
// its rows of x.
template <int kOut, int kRows, int kIn, int kCluster, bool kCooperative>
struct ProductTile {
  using Shape = cute::Shape<cute::Int<kOut>, cute::Int<kRows>, cute::Int<kIn>>;
  using Cluster = cute::Shape<cute::Int<kCluster>, cute::Int<1>, cute::Int<1>>;
  using Mainloop = std::conditional_t<kCooperative, cutlass::gemm::KernelTmaWarpSpecializedCooperative,
                                      cutlass::gemm::KernelTmaWarpSpecializedPingpong>;
  using Epilogue = std::conditional_t<kCooperative, cutlass::epilogue::TmaWarpSpecializedCooperative,
                                      cutlass::epilogue::TmaWarpSpecialized>;
};
template <typename Tile, typename Out>
struct ProductKernel {
  using Half = cutlass::bfloat16_t;
  using WeightLayout = cutlass::layout::RowMajor;
  using ColumnMajor = cutlass::layout::ColumnMajor;  // x^T and y^T
  using Bias = cutlass::epilogue::fusion::Sm90ColBroadcast<0, typename Tile::Shape, Half, float>;
  using AddBias = cutlass::epilogue::fusion::Sm90EVT<
      cutlass::epilogue::fusion::Sm90Compute<cutlass::plus, Out, float, cutlass::FloatRoundStyle::round_to_nearest>,
      cutlass::epilogue::fusion::Sm90AccFetch, Bias>;
  static constexpr int kAlignment = 16 / sizeof(Out);
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, typename Tile::Shape, typename Tile::Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, ColumnMajor, kAlignment, Out, ColumnMajor,
      kAlignment, typename Tile::Epilogue, AddBias>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, WeightLayout, 8, Half, ColumnMajor, 8, float,
      typename Tile::Shape, typename Tile::Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
      typename Tile::Mainloop>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
};

inline constexpr const char* kOperation = "batch-invariant product";

template <typename Tile, typename Out>
void run_product(const InvariantProduct& call, CUstream_st* stream) {
  using P = ProductKernel<Tile, Out>;
  using Half = typename P::Half;
  typename P::Kernel::StrideA weight_stride{};
  typename P::Kernel::StrideB x_stride{};
  typename P::Kernel::StrideD y_stride{};
  cute::get<0>(weight_stride) = call.in;
  cute::get<0>(x_stride) = call.x_stride;
  cute::get<1>(y_stride) = call.y_stride;
  typename P::Gemm::Arguments arguments{
      cutlass::gemm::GemmUniversalMode::kGemm,
      {call.out, call.rows, call.in, 1},
      {static_cast<const Half*>(call.weight), weight_stride, static_cast<const Half*>(call.x), x_stride},
      {{{}, {static_cast<const Half*>(call.bias)}, {}}, nullptr, {}, static_cast<Out*>(call.y), y_stride}};
  arguments.hw_info.device_id = call.device;
  arguments.hw_info.sm_count = call.processors;
  typename P::Gemm gemm;
  require_cutlass(gemm.can_implement(arguments), kOperation, "cannot implement it");
  require_cutlass(gemm.initialize(arguments, nullptr, stream), kOperation, "cannot set it up");
  require_cutlass(gemm.run(stream), kOperation, "cannot run it");
}

template <typename Tile>
void launch_product(const InvariantProduct& call, CUstream_st* stream) {
  call.wide ? run_product<Tile, float>(call, stream) : run_product<Tile, cutlass::bfloat16_t>(call, stream);
}

}  // namespace hexad::modeling::cuda
