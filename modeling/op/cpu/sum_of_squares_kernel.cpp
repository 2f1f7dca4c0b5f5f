#include "modeling/op/cpu/sum_of_squares_kernel.hpp"

namespace hexad::modeling::cpu {
namespace {

template <typename T>
HEXAD_INLINE double sum(const T* x, int64_t count) {
  double squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < count; ++i) squares += double(load(x + i)) * double(load(x + i));
  return squares;
}

}  // namespace

HEXAD_VECTOR_CLONES
double sum_of_squares(const float* x, int64_t count) { return sum(x, count); }

HEXAD_VECTOR_CLONES
double sum_of_squares(const BFloat16* x, int64_t count) { return sum(x, count); }

}  // namespace hexad::modeling::cpu
