// Products of FP8 matrices by cuBLASLt, with what ATen's have not: sums that are added to, and parts of them.
#pragma once
#include "modeling/op/fp8/fp8.hpp"

namespace hexad::modeling::cuda {

struct Fp8MatmulOptions {
  bool accumulate = false;
  at::Tensor bias = {};  // [N] of the type of `out`, on 16 bytes; or undefined
};
// out (+)= a b^T, of a [M, K] and b [N, K]; out [M, N], or by tensor [parts, M / parts, N] with any distance between
// parts that is a multiple of 16 bytes. Rows of `out` begin on 16 bytes; by strips and blocks M and N are multiples of
// 4. On the current stream, without partial sums of fewer bits. False, and nothing done, where cuBLAS has no kernel for
//    it.
bool fp8_matmul(const at::Tensor& out, const Fp8Matrix& a, const Fp8Matrix& b, const Fp8MatmulOptions& options);

size_t cublas_version();

}  // namespace hexad::modeling::cuda
