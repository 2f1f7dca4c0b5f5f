#include <algorithm>

#include "modeling/op/cuda/fp8/fp8_kernel.hpp"
#include "modeling/op/cuda/fp8/fp8_tile.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kBlock = 256;
constexpr int kMostBlocks = 132 * 8;  // of the search: two waves of an H200

// Without their sign, bits of floating-point numbers are in the order of the numbers, with what is none at the end.
struct Largest32 {
  uint32_t bits = 0;
  __device__ void add(uint32_t word) { bits = max(bits, word & 0x7fffffffu); }
  __device__ float value() const { return __uint_as_float(bits); }
};
template <typename T>
struct Largest16 {
  uint32_t bits = 0;  // of two numbers
  __device__ void add(uint32_t word) { bits = __vmaxu2(bits, word & 0x7fff7fffu); }
  __device__ float value() const {
    const uint16_t larger = static_cast<uint16_t>(max(bits & 0xffffu, bits >> 16));
    return to_float(*reinterpret_cast<const T*>(&larger));
  }
};
template <typename T>
struct LargestOf {
  using type = Largest16<T>;
};
template <>
struct LargestOf<float> {
  using type = Largest32;
};

template <typename T>
__global__ void __launch_bounds__(kBlock) largest_kernel(Fp8Source source, float* result) {
  constexpr unsigned kPer = 16 / sizeof(T);
  const unsigned per_row = static_cast<unsigned>(source.columns) / kPer;
  const unsigned total = static_cast<unsigned>(source.rows) * per_row;
  const T* x = static_cast<const T*>(source.x);
  typename LargestOf<T>::type largest;
#pragma unroll 4
  for (unsigned i = blockIdx.x * kBlock + threadIdx.x; i < total; i += gridDim.x * kBlock) {
    const unsigned row = i / per_row, piece = i % per_row;
    const uint4 words = *reinterpret_cast<const uint4*>(x + row * source.stride + piece * kPer);
    largest.add(words.x), largest.add(words.y), largest.add(words.z), largest.add(words.w);
  }
  unsigned bits = __float_as_uint(largest.value());
  bits = __reduce_max_sync(0xffffffffu, bits);
  if (threadIdx.x % 32 == 0) atomicMax(reinterpret_cast<unsigned*>(result), bits);
}

// Four elements.
template <typename F, typename T>
__device__ inline uint32_t packed(const T* x, float factor) {
  return fp8_word<F>(__fmul_rn(to_float(x[0]), factor), __fmul_rn(to_float(x[1]), factor),
                     __fmul_rn(to_float(x[2]), factor), __fmul_rn(to_float(x[3]), factor));
}

// A block casts a tile; a thread holds 8 columns of 4 rows at a time.
template <typename T, typename F, bool kByRows, bool kByColumns>
__global__ void __launch_bounds__(kBlock) cast_kernel(Fp8CastCall call) {
  __shared__ alignas(16) uint32_t tile[kByColumns ? kTile * kWords : 1];
  const float factor = factor_of<F>(call.largest[blockIdx.z]);
  if (call.inverse && blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
    call.inverse[blockIdx.z] = __frcp_rn(factor);
  const int group = threadIdx.x % kGroups;
  const int64_t first_column = int64_t(blockIdx.x) * kTile, first_row = int64_t(blockIdx.y) * kTile;
  const int64_t column = first_column + group * kWidth;
  const T* x = static_cast<const T*>(call.source.x) + blockIdx.z * call.source_distance;
  uint8_t* by_rows = static_cast<uint8_t*>(call.by_rows) + blockIdx.z * call.by_rows_distance;
#pragma unroll
  for (int pass = 0; pass < kWords / (kBlock / kGroups); ++pass) {
    const int word = pass * (kBlock / kGroups) + threadIdx.x / kGroups;
    Pack<T, kWidth> read[4] = {};  // all before the first is used
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int64_t row = first_row + word * 4 + r;
      if (row < call.source.rows && column < call.source.columns)
        read[r] = *reinterpret_cast<const Pack<T, kWidth>*>(x + row * call.source.stride + column);
    }
    uint32_t cast[2][4];  // columns 0-3 and 4-7 of each row
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int64_t row = first_row + word * 4 + r;
      cast[0][r] = packed<F>(read[r].values, factor), cast[1][r] = packed<F>(read[r].values + 4, factor);
      if (kByRows && row < call.source.rows && column < call.source.columns)
        *reinterpret_cast<uint2*>(by_rows + row * call.by_rows_stride + column) = make_uint2(cast[0][r], cast[1][r]);
    }
    if constexpr (kByColumns) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint32_t turned[4];
        transpose_bytes(cast[half], turned);
#pragma unroll
        for (int j = 0; j < 4; ++j) tile[tile_word(group * kWidth + half * 4 + j, word)] = turned[j];
      }
    }
  }
  if constexpr (kByColumns) {
    __syncthreads();
    uint8_t* by_columns = static_cast<uint8_t*>(call.by_columns) + blockIdx.z * call.by_columns_distance;
    const int pair = threadIdx.x % (kWords / 2);  // of words: eight rows
    const int64_t row = first_row + pair * 8;
    if (row >= call.padded_rows) return;
    for (int c = threadIdx.x / (kWords / 2); c < kTile; c += kBlock / (kWords / 2)) {
      if (first_column + c >= call.source.columns) return;
      *reinterpret_cast<uint2*>(by_columns + (first_column + c) * call.by_columns_stride + row) =
          *reinterpret_cast<const uint2*>(tile + tile_word(c, 2 * pair));
    }
  }
}

template <typename T, typename F>
void launch(const Fp8CastCall& call, CUstream_st* stream) {
  const int64_t rows = call.by_columns ? call.padded_rows : call.source.rows;
  const dim3 grid(blocks_for(call.source.columns, kTile), blocks_for(rows, kTile), call.count);
  const auto kernel = !call.by_columns ? cast_kernel<T, F, true, false>
                      : !call.by_rows  ? cast_kernel<T, F, false, true>
                                       : cast_kernel<T, F, true, true>;
  kernel<<<grid, kBlock, 0, stream>>>(call);
}

}  // namespace

void fp8_largest(const Fp8Source& source, float* largest, CUstream_st* stream) {
  if (source.rows == 0 || source.columns == 0) return;
  const int64_t pieces = source.rows * source.columns / kWidth;
  const int blocks = static_cast<int>(std::min<int64_t>(kMostBlocks, (pieces + kBlock - 1) / kBlock));
  with_element(source.type,
               [&](auto value) { largest_kernel<decltype(value)><<<blocks, kBlock, 0, stream>>>(source, largest); });
  check_launch("fp8_largest");
}

void fp8_cast(const Fp8CastCall& call, CUstream_st* stream) {
  if (call.source.rows == 0 || call.source.columns == 0) return;
  with_element(call.source.type, [&](auto value) {
    using T = decltype(value);
    call.to == Fp8Element::e4m3 ? launch<T, E4m3>(call, stream) : launch<T, E5m2>(call, stream);
  });
  check_launch("fp8_cast");
}

}  // namespace hexad::modeling::cuda
