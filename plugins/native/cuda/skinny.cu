#include <type_traits>

#include "plugins/native/cuda/check.hpp"
#include "plugins/native/cuda/skinny.hpp"

namespace hexad::native::cuda {
namespace {

// A block makes 16 columns of y; its warps share out the sum over `in`. The weight is the left factor of
// mma.m16n8k16 and comes straight from memory: of every 32 elements of a row, a lane has 8 neighbours, which are the
// indices k that the instruction expects of it in another order, and x is read in the same order.
constexpr int kWarps = 8, kColumns = 16, kStep = 32, kBatch = 8;

__device__ uint4 load_once(const __nv_bfloat16* from) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from));
  return x;
}

__device__ void multiply_add(float (&sum)[4], const uint4& low, const uint4& high, const uint4& x) {
  const auto step = [&](uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  };
  step(low.x, high.x, low.y, high.y, x.x, x.y);
  step(low.z, high.z, low.w, high.w, x.z, x.w);
}

struct Shape {
  int rows, in, out;
};

// sums[i][j]: column 8 * (j / 2) + lane / 4 of the block and row 8 * i + lane % 4 * 2 + j % 2, summed over this warp's
// part of `in`. `weight` is that of the block's first column.
template <int kTiles>
__device__ void partial_product(const __nv_bfloat16* x, const __nv_bfloat16* weight, const Shape& s,
                                float (&sums)[kTiles][4]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = s.in / kWarps;
  const int64_t begin = int64_t(warp) * part + lane % 4 * 8;
  const __nv_bfloat16* low = weight + int64_t(lane / 4) * s.in + begin;
  const __nv_bfloat16* high = low + int64_t(8) * s.in;
  const __nv_bfloat16* from[kTiles];
#pragma unroll
  for (int i = 0; i < kTiles; ++i) from[i] = x + int64_t(min(i * 8 + lane / 4, s.rows - 1)) * s.in + begin;
  // All loads of a batch are under way before the first is used.
  const auto run = [&](int at, auto batch) {
    constexpr int kCount = decltype(batch)::value;
    uint4 a[kCount], b[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      a[i] = load_once(low + at + i * kStep);
      b[i] = load_once(high + at + i * kStep);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile)
        multiply_add(sums[tile], a[i], b[i], *reinterpret_cast<const uint4*>(from[tile] + at + i * kStep));
    }
  };
  int at = 0;
  for (; at + kBatch * kStep <= part; at += kBatch * kStep) run(at, std::integral_constant<int, kBatch>());
  for (; at + 2 * kStep <= part; at += 2 * kStep) run(at, std::integral_constant<int, 2>());
  for (; at < part; at += kStep) run(at, std::integral_constant<int, 1>());
}

// The warps' sums together, in the order of warps; thread i has row i / kColumns, column i % kColumns.
template <int kTiles>
__device__ float total(const float (&sums)[kTiles][4]) {
  __shared__ float parts[kWarps][kTiles * 8][kColumns + 1];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();  // the last use is over
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

template <int kTiles, bool kSwiglu, typename T>
__global__ void __launch_bounds__(kWarps * 32, 2)
    skinny_kernel(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias, T* y, Shape s) {
  const int64_t column = int64_t(blockIdx.x) * kColumns;
  float sums[kTiles][4] = {};
  partial_product(x, weight + column * s.in, s, sums);
  float result = total(sums);
  if constexpr (kSwiglu) {
    float ups[kTiles][4] = {};
    partial_product(x, weight + (column + s.out) * s.in, s, ups);
    result = result / (1.0f + __expf(-result)) * total(ups);
  }
  const int row = threadIdx.x / kColumns;
  const int64_t at = column + threadIdx.x % kColumns;
  if (row >= s.rows) return;
  if (bias) result += __bfloat162float(bias[at]);
  write(y + int64_t(row) * s.out + at, result);
}

template <bool kSwiglu, typename T>
void launch(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias, T* y, const Shape& s,
            cudaStream_t stream) {
  const auto kernel = s.rows <= 8 ? skinny_kernel<1, kSwiglu, T> : skinny_kernel<2, kSwiglu, T>;
  kernel<<<unsigned(s.out / kColumns), kWarps * 32, 0, stream>>>(x, weight, bias, y, s);
  check(cudaGetLastError(), "product of few rows");
}

}  // namespace

bool is_skinny(int rows, int in, int out) {
  return rows <= kMostSkinnyRows && in % (kWarps * kStep) == 0 && out % kColumns == 0;
}

void multiply_skinny(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias, __nv_bfloat16* y,
                     int rows, int in, int out, cudaStream_t stream) {
  launch<false>(x, weight, bias, y, {rows, in, out}, stream);
}

void multiply_skinny(const __nv_bfloat16* x, const __nv_bfloat16* weight, float* y, int rows, int in, int out,
                     cudaStream_t stream) {
  launch<false>(x, weight, /*bias=*/nullptr, y, {rows, in, out}, stream);
}

void swiglu_skinny(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* y, int rows, int in, int width,
                   cudaStream_t stream) {
  launch<true>(x, weight, /*bias=*/nullptr, y, {rows, in, width}, stream);
}

}  // namespace hexad::native::cuda
