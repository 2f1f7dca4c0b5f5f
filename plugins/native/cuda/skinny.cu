#include <cuda_fp8.h>

#include <type_traits>

#include "modeling/op/cuda/mma.cuh"
#include "plugins/native/cuda/early_launch.cuh"
#include "plugins/native/cuda/skinny.hpp"

namespace hexad::native::cuda {
namespace {

// A block makes 16 columns of y; its warps share out the sum over `in`. The weight is the left factor of
// mma.m16n8k16 and comes straight from memory: of every 64 bytes of a row, a lane has 16 neighbours, which are the
// indices k that the instruction expects of it in another order, and x is read in the same order.
constexpr int kWarps = 8, kColumns = 16, kBatch = 8;
template <typename W>
constexpr int kNeighbours = 16 / sizeof(W);
template <typename W>
constexpr int kStep = 4 * kNeighbours<W>;  // elements of a row that a warp takes at a time

__device__ uint4 load_once(const void* from) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from));
  return x;
}

__device__ void multiply_add(float (&sum)[4], const uint2& low, const uint2& high, uint32_t x0, uint32_t x1) {
  modeling::cuda::multiply_tile(sum, low.x, high.x, low.y, high.y, x0, x1);
}

// Neighbours of a row of x and of two rows of the weight.
__device__ void multiply_add(float (&sum)[4], const uint4& low, const uint4& high, const __nv_bfloat16* x,
                             __nv_bfloat16) {
  const uint4 y = *reinterpret_cast<const uint4*>(x);
  multiply_add(sum, uint2{low.x, low.y}, uint2{high.x, high.y}, y.x, y.y);
  multiply_add(sum, uint2{low.z, low.w}, uint2{high.z, high.w}, y.z, y.w);
}

// Two e4m3 in the upper bytes of the halves of a word -> bf16: the bits go where bf16 has them, and a product mends the
// exponent, whose bias is 7 here and 127 there, of subnormal numbers too.
__device__ uint32_t widened_pair(uint32_t x) {
  const uint32_t bits = (x & 0x80008000u) | ((x >> 4) & 0x07f007f0u), mend = 0x7b807b80u;  // 2^120, twice
  const __nv_bfloat162 y =
      __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&bits), *reinterpret_cast<const __nv_bfloat162*>(&mend));
  return *reinterpret_cast<const uint32_t*>(&y);
}

// Four neighbours; exact.
__device__ uint2 widened(uint32_t e4m3) {
  return {widened_pair(__byte_perm(e4m3, 0, 0x1404)), widened_pair(__byte_perm(e4m3, 0, 0x3424))};
}

__device__ void multiply_add(float (&sum)[4], const uint4& low, const uint4& high, const __nv_bfloat16* x,
                             __nv_fp8_e4m3) {
  const uint4 y = *reinterpret_cast<const uint4*>(x), z = *reinterpret_cast<const uint4*>(x + 8);
  multiply_add(sum, widened(low.x), widened(high.x), y.x, y.y);
  multiply_add(sum, widened(low.y), widened(high.y), y.z, y.w);
  multiply_add(sum, widened(low.z), widened(high.z), z.x, z.y);
  multiply_add(sum, widened(low.w), widened(high.w), z.z, z.w);
}

struct Shape {
  int rows, in, out;
};

// sums[i][j]: column 8 * (j / 2) + lane / 4 of the block and row 8 * i + lane % 4 * 2 + j % 2, summed over this warp's
// part of `in`. `low`, `high`: the weight of the block's first and of its other eight columns.
template <int kTiles, typename W>
__device__ void partial_product(const __nv_bfloat16* x, const W* low, const W* high, const Shape& s,
                                float (&sums)[kTiles][4]) {
  constexpr int kTake = kStep<W>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int first = s.in / kWarps * warp, part = s.in / kWarps;  // in bf16 the warps' parts are equal: is_skinny()
  if constexpr (sizeof(W) == 1) {
    const int steps = s.in / kTake;
    first = steps * warp / kWarps * kTake;
    part = steps * (warp + 1) / kWarps * kTake - first;
  }
  const int64_t begin = int64_t(first) + lane % 4 * kNeighbours<W>;
  low += int64_t(lane / 4) * s.in + begin, high += int64_t(lane / 4) * s.in + begin;
  const __nv_bfloat16* from[kTiles];
#pragma unroll
  for (int i = 0; i < kTiles; ++i) from[i] = x + int64_t(min(i * 8 + lane / 4, s.rows - 1)) * s.in + begin;
  // All loads of a batch are under way before the first is used.
  const auto run = [&](int at, auto batch) {
    constexpr int kCount = decltype(batch)::value;
    uint4 a[kCount], b[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      a[i] = load_once(low + at + i * kTake);
      b[i] = load_once(high + at + i * kTake);
    }
    after_earlier();  // weights come meanwhile
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) multiply_add(sums[tile], a[i], b[i], from[tile] + at + i * kTake, W());
    }
  };
  int at = 0;
  if (part == 0) after_earlier();
  for (; at + kBatch * kTake <= part; at += kBatch * kTake) run(at, std::integral_constant<int, kBatch>());
  for (; at + 2 * kTake <= part; at += 2 * kTake) run(at, std::integral_constant<int, 2>());
  for (; at < part; at += kTake) run(at, std::integral_constant<int, 1>());
}

// The warps' sums together, in the order of warps; thread i has row i / kColumns, column i % kColumns.
template <int kTiles>
__device__ float total(const float (&sums)[kTiles][4]) {
  __shared__ float parts[kWarps][kTiles * 8][kColumns + 1];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) parts[warp][i * 8 + lane % 4 * 2 + j % 2][j / 2 * 8 + lane / 4] = sums[i][j];
  }
  __syncthreads();
  float sum = 0;
  if (threadIdx.x < kTiles * 8 * kColumns) {
    for (int i = 0; i < kWarps; ++i) sum += parts[i][threadIdx.x / kColumns][threadIdx.x % kColumns];
  }
  return sum;
}

__device__ void write(__nv_bfloat16* to, float x) { *to = __float2bfloat16_rn(x); }
__device__ void write(float* to, float x) { *to = x; }

// scales: of the weight's rows in FP8, else not read. With SwiGLU the block's columns are eight of gate and the same
// eight of up.
template <int kTiles, bool kSwiglu, typename W, typename T>
__global__ void __launch_bounds__(kWarps * 32, 2)
    skinny_kernel(const __nv_bfloat16* x, const W* weight, const float* scales, const __nv_bfloat16* bias, T* y,
                  Shape s) {
  start_next();
  constexpr int kHalf = kColumns / 2;
  const int64_t column = int64_t(blockIdx.x) * (kSwiglu ? kHalf : kColumns),
                other = kSwiglu ? s.out + column : column + kHalf;
  float sums[kTiles][4] = {};
  partial_product(x, weight + column * s.in, weight + other * s.in, s, sums);
  const int row = threadIdx.x / kColumns, i = threadIdx.x % kColumns;
  const int64_t at = i < kHalf ? column + i : other + i - kHalf;
  float result = total(sums);
  if constexpr (std::is_same_v<W, __nv_fp8_e4m3>) result *= scales[at];
  if constexpr (kSwiglu) result = result / (1.0f + __expf(-result)) * __shfl_down_sync(~0u, result, kHalf);
  if (row >= s.rows || (kSwiglu && i >= kHalf)) return;
  if (bias) result += __bfloat162float(bias[at]);
  write(y + int64_t(row) * s.out + at, result);
}

template <bool kSwiglu, typename W, typename T>
void launch(const __nv_bfloat16* x, const W* weight, const float* scales, const __nv_bfloat16* bias, T* y,
            const Shape& s, cudaStream_t stream) {
  const auto kernel = s.rows <= 8 ? skinny_kernel<1, kSwiglu, W, T> : skinny_kernel<2, kSwiglu, W, T>;
  launch_early("product of few rows", kernel, unsigned(s.out / (kSwiglu ? kColumns / 2 : kColumns)), kWarps * 32,
               stream, x, weight, scales, bias, y, s);
}

}  // namespace

bool is_skinny(int rows, int in, int out) {
  return rows <= kMostSkinnyRows && in % (kWarps * kStep<__nv_bfloat16>) == 0 && out % kColumns == 0;
}

void multiply_skinny(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias, __nv_bfloat16* y,
                     int rows, int in, int out, cudaStream_t stream) {
  launch<false>(x, weight, /*scales=*/nullptr, bias, y, {rows, in, out}, stream);
}

void multiply_skinny(const __nv_bfloat16* x, const __nv_bfloat16* weight, float* y, int rows, int in, int out,
                     cudaStream_t stream) {
  launch<false>(x, weight, /*scales=*/nullptr, /*bias=*/nullptr, y, {rows, in, out}, stream);
}

void swiglu_skinny(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int rows, int in, int width,
                   cudaStream_t stream) {
  launch<true>(x, weight, /*scales=*/nullptr, /*bias=*/nullptr, y, {rows, in, width}, stream);
}

void multiply_skinny(const __nv_bfloat16* x, const Fp8Weight& weight, const __nv_bfloat16* bias, __nv_bfloat16* y,
                     int rows, int in, int out, cudaStream_t stream) {
  launch<false>(x, reinterpret_cast<const __nv_fp8_e4m3*>(weight.values), weight.scales, bias, y, {rows, in, out},
                stream);
}

void swiglu_skinny(const __nv_bfloat16* x, const Fp8Weight& weight, __nv_bfloat16* y, int rows, int in, int width,
                   cudaStream_t stream) {
  launch<true>(x, reinterpret_cast<const __nv_fp8_e4m3*>(weight.values), weight.scales, /*bias=*/nullptr, y,
               {rows, in, width}, stream);
}

}  // namespace hexad::native::cuda
