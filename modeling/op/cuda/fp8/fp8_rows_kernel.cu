#include "modeling/op/cuda/fp8/fp8_kernel.hpp"
#include "modeling/op/cuda/fp8/fp8_tile.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kBlock = 256, kRows = kBlock / 32;

// A warp reads a row twice: the second time it lies in a cache.
template <typename T>
__global__ void __launch_bounds__(kBlock) rows_kernel(Fp8Source source, uint8_t* values, float* inverse) {
  const int64_t row = int64_t(blockIdx.x) * kRows + threadIdx.x / 32;
  if (row >= source.rows) return;  // the whole warp
  const int64_t lane = threadIdx.x % 32;
  const T* x = static_cast<const T*>(source.x) + row * source.stride;
  uint32_t bits = 0;  // without their sign they are in the order of the numbers, with what is none at the end
#pragma unroll 4
  for (int64_t column = lane * kWidth; column < source.columns; column += 32 * kWidth) {
    const Pack<T, kWidth> read = *reinterpret_cast<const Pack<T, kWidth>*>(x + column);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) bits = max(bits, __float_as_uint(to_float(read.values[j])) & 0x7fffffffu);
  }
  const float factor = factor_of<E4m3>(__uint_as_float(__reduce_max_sync(0xffffffffu, bits)));
  if (lane == 0) inverse[row] = __frcp_rn(factor);
#pragma unroll 4
  for (int64_t column = lane * kWidth; column < source.columns; column += 32 * kWidth) {
    const Pack<T, kWidth> read = *reinterpret_cast<const Pack<T, kWidth>*>(x + column);
    const auto word = [&](int at) {
      const T* four = read.values + at;
      return fp8_word<E4m3>(__fmul_rn(to_float(four[0]), factor), __fmul_rn(to_float(four[1]), factor),
                            __fmul_rn(to_float(four[2]), factor), __fmul_rn(to_float(four[3]), factor));
    };
    *reinterpret_cast<uint2*>(values + row * source.columns + column) = make_uint2(word(0), word(4));
  }
}

}  // namespace

void fp8_cast_rows(const Fp8Source& source, void* values, float* inverse, CUstream_st* stream) {
  if (source.rows == 0 || source.columns == 0) return;
  with_element(source.type, [&](auto value) {
    rows_kernel<decltype(value)>
        <<<blocks_for(source.rows, kRows), kBlock, 0, stream>>>(source, static_cast<uint8_t*>(values), inverse);
  });
  check_launch("fp8_cast_rows");
}

}  // namespace hexad::modeling::cuda
