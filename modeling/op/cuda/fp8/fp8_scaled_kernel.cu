#include "modeling/op/cuda/fp8/fp8_kernel.hpp"
#include "modeling/op/cuda/fp8/fp8_tile.cuh"

namespace hexad::modeling::cuda {
namespace {

constexpr int kBlock = 256, kWarps = kBlock / 32;
constexpr int kLines = kBlock / kGroups;  // words of the transposed tile that are made at a time
constexpr int kPasses = kWords / kLines;

// What a thread reads: 8 columns of 4 rows, twice.
template <typename T>
struct Held {
  Pack<T, kWidth> rows[kPasses][4] = {};

  __device__ void read(const Fp8Source& source, int64_t first_row, int64_t column) {
    if (column >= source.columns) return;
    const T* x = static_cast<const T*>(source.x) + column;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int64_t row = first_row + pass * kLines * 4 + r;
        if (row < source.rows) rows[pass][r] = *reinterpret_cast<const Pack<T, kWidth>*>(x + row * source.stride);
      }
    }
  }
};

// Without their sign, bits of floating-point numbers are in the order of the numbers, with what is none at the end.
__device__ inline uint32_t magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }

// The largest magnitudes of the rows and of the columns that a thread holds.
struct Magnitudes {
  uint32_t rows[kPasses][4], columns[kWidth];

  template <typename T>
  __device__ explicit Magnitudes(const Held<T>& held) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) columns[j] = 0;
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        rows[pass][r] = 0;
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
          const uint32_t bits = magnitude(to_float(held.rows[pass][r].values[j]));
          rows[pass][r] = max(rows[pass][r], bits), columns[j] = max(columns[j], bits);
        }
      }
    }
  }
};

// The factors of a thread's rows and columns. Each function ends with all of them where they belong.
template <typename F>
struct Factors {
  float rows[kPasses][4], columns[kWidth];

  // Rows of a tile are strips: the 16 threads of a half warp hold one.
  __device__ void find_rows(const Magnitudes& m) {
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        uint32_t bits = m.rows[pass][r];
#pragma unroll
        for (int offset = kGroups / 2; offset > 0; offset /= 2)
          bits = max(bits, __shfl_xor_sync(0xffffffffu, bits, offset));
        rows[pass][r] = factor_of<F>(__uint_as_float(bits));
      }
    }
  }

  // Columns of a tile are strips: every thread of the block holds a part of eight.
  __device__ void find_columns(const Magnitudes& m, uint32_t (&largest)[kWarps][kTile], float (&shared)[kTile]) {
    const int lane = threadIdx.x % 32, group = threadIdx.x % kGroups;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const uint32_t bits = max(m.columns[j], __shfl_xor_sync(0xffffffffu, m.columns[j], kGroups));
      if (lane < kGroups) largest[threadIdx.x / 32][group * kWidth + j] = bits;
    }
    __syncthreads();
    if (threadIdx.x < kTile) {
      uint32_t bits = 0;
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) bits = max(bits, largest[warp][threadIdx.x]);
      shared[threadIdx.x] = factor_of<F>(__uint_as_float(bits));
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kWidth; ++j) columns[j] = shared[group * kWidth + j];
  }

  // The tile is a block.
  __device__ void find_block(const Magnitudes& m, uint32_t (&largest)[kWarps][kTile]) {
    uint32_t bits = 0;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) bits = max(bits, m.columns[j]);
    bits = __reduce_max_sync(0xffffffffu, bits);
    if (threadIdx.x % 32 == 0) largest[0][threadIdx.x / 32] = bits;
    __syncthreads();
    bits = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) bits = max(bits, largest[0][warp]);
    const float factor = factor_of<F>(__uint_as_float(bits));
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
#pragma unroll
      for (int r = 0; r < 4; ++r) rows[pass][r] = factor;
    }
#pragma unroll
    for (int j = 0; j < kWidth; ++j) columns[j] = factor;
  }
};

// Of a block, with the zeros behind the last of its row and of its column. One thread calls it.
__device__ void write_block_scale(const Fp8ScaledCastCall& call, float inverse) {
  if (call.row_inverse) {
    float* row = call.row_inverse + blockIdx.y * call.row_inverse_stride;
    row[blockIdx.x] = inverse;
    if (blockIdx.x + 1 == gridDim.x)
      for (int64_t i = gridDim.x; i < call.row_inverse_stride; ++i) row[i] = 0;
  }
  if (call.column_inverse) {
    float* row = call.column_inverse + blockIdx.x * call.column_inverse_stride;
    row[blockIdx.y] = inverse;
    if (blockIdx.y + 1 == gridDim.y)
      for (int64_t i = gridDim.y; i < call.column_inverse_stride; ++i) row[i] = 0;
  }
}

template <typename F, typename T, bool kBlocks>
__device__ void write_rows(const Fp8ScaledCastCall& call, const Held<T>& held, const Factors<F>& factors,
                           int64_t first_row, int64_t column) {
  uint8_t* by_rows = static_cast<uint8_t*>(call.by_rows) + column;
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const int64_t begin = first_row + pass * kLines * 4;
    if (begin >= call.padded_rows) return;  // a multiple of four: so are the others
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const T* x = held.rows[pass][r].values;
      const float factor = factors.rows[pass][r];
      uint32_t words[2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        words[half] =
            fp8_word<F>(__fmul_rn(to_float(x[half * 4]), factor), __fmul_rn(to_float(x[half * 4 + 1]), factor),
                        __fmul_rn(to_float(x[half * 4 + 2]), factor), __fmul_rn(to_float(x[half * 4 + 3]), factor));
      *reinterpret_cast<uint2*>(by_rows + (begin + r) * call.by_rows_stride) = make_uint2(words[0], words[1]);
    }
    if (!kBlocks && threadIdx.x % kGroups == 0)
      *reinterpret_cast<float4*>(call.row_inverse + blockIdx.x * call.row_inverse_stride + begin) =
          make_float4(__frcp_rn(factors.rows[pass][0]), __frcp_rn(factors.rows[pass][1]),
                      __frcp_rn(factors.rows[pass][2]), __frcp_rn(factors.rows[pass][3]));
  }
}

// The thread's part of the transposed tile.
template <typename F, typename T>
__device__ void turn(const Held<T>& held, const Factors<F>& factors, uint32_t (&tile)[kTile * kWords]) {
  const int group = threadIdx.x % kGroups;
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const int word = pass * kLines + threadIdx.x / kGroups;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t cast[4], turned[4];
      const float* factor = factors.columns + half * 4;
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const T* x = held.rows[pass][r].values + half * 4;
        cast[r] = fp8_word<F>(__fmul_rn(to_float(x[0]), factor[0]), __fmul_rn(to_float(x[1]), factor[1]),
                              __fmul_rn(to_float(x[2]), factor[2]), __fmul_rn(to_float(x[3]), factor[3]));
      }
      transpose_bytes(cast, turned);
#pragma unroll
      for (int j = 0; j < 4; ++j) tile[tile_word(group * kWidth + half * 4 + j, word)] = turned[j];
    }
  }
}

// All 128 rows of the tile: what lies behind the source's is zeros.
__device__ void write_columns(const Fp8ScaledCastCall& call, const uint32_t (&tile)[kTile * kWords], int64_t first_row,
                              int64_t first_column) {
  uint8_t* by_columns = static_cast<uint8_t*>(call.by_columns);
  const int pair = threadIdx.x % (kWords / 2);  // of words: eight rows
  for (int c = threadIdx.x / (kWords / 2); c < kTile; c += kBlock / (kWords / 2)) {
    if (first_column + c >= call.source.columns) return;
    *reinterpret_cast<uint2*>(by_columns + (first_column + c) * call.by_columns_stride + first_row + pair * 8) =
        *reinterpret_cast<const uint2*>(tile + tile_word(c, 2 * pair));
  }
}

// A block of threads casts a tile.
template <typename T, typename F, bool kByRows, bool kByColumns, bool kBlocks>
__global__ void __launch_bounds__(kBlock) cast_kernel(Fp8ScaledCastCall call) {
  __shared__ alignas(16) uint32_t tile[kByColumns ? kTile * kWords : 1];
  __shared__ alignas(16) uint32_t largest[kWarps][kTile];
  __shared__ alignas(16) float shared[kTile];
  const int64_t tile_row = int64_t(blockIdx.y) * kTile, tile_column = int64_t(blockIdx.x) * kTile;
  const int64_t first_row = tile_row + threadIdx.x / kGroups * 4;
  const int64_t column = tile_column + threadIdx.x % kGroups * kWidth;
  Held<T> held;
  held.read(call.source, first_row, column);
  const Magnitudes magnitudes(held);
  Factors<F> factors;
  if constexpr (kBlocks) {
    factors.find_block(magnitudes, largest);
    if (threadIdx.x == 0) write_block_scale(call, __frcp_rn(factors.columns[0]));
  }
  if constexpr (kByRows) {
    if constexpr (!kBlocks) factors.find_rows(magnitudes);
    write_rows<F, T, kBlocks>(call, held, factors, first_row, column);
  }
  if constexpr (kByColumns) {
    if constexpr (!kBlocks) {
      factors.find_columns(magnitudes, largest, shared);
      if (threadIdx.x < kTile && tile_column + threadIdx.x < call.source.columns)
        call.column_inverse[blockIdx.y * call.column_inverse_stride + tile_column + threadIdx.x] =
            __frcp_rn(shared[threadIdx.x]);
    }
    turn<F>(held, factors, tile);
    __syncthreads();
    write_columns(call, tile, tile_row, tile_column);
  }
}

template <typename T, typename F, bool kBlocks>
void launch(const Fp8ScaledCastCall& call, CUstream_st* stream) {
  const dim3 grid(blocks_for(call.source.columns, kTile), blocks_for(call.source.rows, kTile));
  const auto kernel = !call.by_columns ? cast_kernel<T, F, true, false, kBlocks>
                      : !call.by_rows  ? cast_kernel<T, F, false, true, kBlocks>
                                       : cast_kernel<T, F, true, true, kBlocks>;
  kernel<<<grid, kBlock, 0, stream>>>(call);
}

}  // namespace

void fp8_cast_scaled(const Fp8ScaledCastCall& call, CUstream_st* stream) {
  if (call.source.rows == 0 || call.source.columns == 0) return;
  with_element(call.source.type, [&](auto value) {
    using T = decltype(value);
    if (call.blocks) {
      launch<T, E4m3, true>(call, stream);
    } else if (call.to == Fp8Element::e4m3) {
      launch<T, E4m3, false>(call, stream);
    } else {
      launch<T, E5m2, false>(call, stream);
    }
  });
  check_launch("fp8_cast_scaled");
}

}  // namespace hexad::modeling::cuda
