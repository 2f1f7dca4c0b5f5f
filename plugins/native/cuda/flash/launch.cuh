// One instantiation of FlashInfer's paged attention kernel (FA2, mma.sync), launched over our own work items.
#pragma once
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/mask.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/variants.cuh>

#include <cmath>

#include "plugins/native/cuda/attention/attention.hpp"
#include "plugins/native/cuda/check.hpp"

namespace hexad::native::cuda {

// Tiles of 16 keys that each warp takes at a time. FlashInfer takes as many as two blocks a multiprocessor allow. For
// single rows fewer are quicker, because more blocks run at once (measured: 3 to 13 % on an H200; in e4m3 registers
// leave room for as many blocks with two as with one); shared beginnings take half as many, which leaves shared memory
// to the single rows beside them.
template <int kTile, int kDim, typename Kv>
constexpr uint32_t key_tiles() {
  return kTile > 16 ? 4 : kDim == 128 && sizeof(Kv) == 2 ? 1 : 2;
}

// Kv: what the cache holds, nv_bfloat16 or __nv_fp8_e4m3 (widened to bf16, exactly, before the products).
template <int kTile, int kDim, bool kCausal, typename Kv>
void launch_attention(const AttentionShape& shape, const LevelArrays& level, const __nv_bfloat16* q, LayerPools pools,
                      __nv_bfloat16* out, float* log_sums, cudaStream_t stream) {
  using namespace flashinfer;
  using Params = BatchPrefillPagedParams<nv_bfloat16, Kv, nv_bfloat16, int32_t>;
  using Variant =
      DefaultAttention</*custom_mask=*/false, /*sliding_window=*/false, /*soft_cap=*/false, /*alibi=*/false>;
  using Traits =
      KernelTraits<kCausal ? MaskMode::kCausal : MaskMode::kNone, kTile, get_num_mma_q(kTile),
                   key_tiles<kTile, kDim, Kv>(), kDim / 16, kDim / 16, get_num_warps_q(kTile), get_num_warps_kv(kTile),
                   PosEncodingMode::kNone, nv_bfloat16, Kv, nv_bfloat16, float, int32_t, Variant>;
  static_assert(!Traits::IsInvalid());
  if (level.items == 0) return;

  const auto borrowed = [](const int32_t* array) { return const_cast<int32_t*>(array); };
  Params params;
  params.q = const_cast<nv_bfloat16*>(q);
  params.paged_kv =
      paged_kv_t<Kv, int32_t>(shape.kv_heads, shape.block_size, kDim, level.requests, QKVLayout::kHND,
                              static_cast<Kv*>(pools.keys), static_cast<Kv*>(pools.values), borrowed(level.blocks),
                              borrowed(level.block_indptr), borrowed(level.last_block_size));
  params.q_indptr = borrowed(level.q_indptr);
  params.o = out;
  params.lse = log_sums;
  params.group_size = uint_fastdiv(shape.heads / shape.kv_heads);
  params.num_qo_heads = shape.heads;
  params.q_stride_n = static_cast<int32_t>(shape.q_stride);
  params.q_stride_h = kDim;
  params.window_left = -1;
  params.sm_scale = 1.0f / std::sqrt(float(kDim));
  params.request_indices = borrowed(level.request);
  params.qo_tile_indices = borrowed(level.tile);
  params.kv_tile_indices = borrowed(level.chunk);
  params.o_indptr = borrowed(level.o_indptr);
  params.block_valid_mask = const_cast<bool*>(level.valid);
  params.kv_chunk_size_ptr = borrowed(level.chunk_size);
  params.padded_batch_size = level.items;
  params.partition_kv = !kCausal;

  const auto kernel = BatchPrefillWithPagedKVCacheKernel</*SAME_KV_STRIDES=*/true, Traits, Params>;
  constexpr size_t kShared = sizeof(typename Traits::SharedStoragePaged);
  static_assert(kShared <= 99 * 1024, "cards of compute capability 8.6, 8.9 and 12.0 give a thread block no more");
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(kShared)), "attention");
  const dim3 grid(level.items, 1, shape.kv_heads), block(32, Traits::NUM_WARPS_Q, Traits::NUM_WARPS_KV);
  kernel<<<grid, block, kShared, stream>>>(params);
  check(cudaGetLastError(), "attention");
}

}  // namespace hexad::native::cuda
