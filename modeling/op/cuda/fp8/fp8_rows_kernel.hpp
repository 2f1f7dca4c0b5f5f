// FP8 copies of rows, each with a scale of its own.
#pragma once
#include "modeling/op/cuda/fp8/fp8_kernel.hpp"

namespace hexad::modeling::cuda {

// values [rows, columns] in e4m3, contiguous; inverse [rows]: x = value * inverse.
void fp8_cast_rows(const Fp8Source& source, void* values, float* inverse, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
