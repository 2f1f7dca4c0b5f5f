// Errors of the CUDA runtime as exceptions.
#pragma once
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace hexad::native::cuda {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": CUDA says " + cudaGetErrorString(status));
}

}  // namespace hexad::native::cuda
