#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "modeling/op/cuda/architecture.hpp"

namespace hexad::modeling::cuda {
namespace {

__global__ void probe() {}

}  // namespace

int probe_architecture(int device) {
  int current = 0;
  cudaFuncAttributes found = {};
  cudaError_t error = cudaGetDevice(&current);
  if (error == cudaSuccess) error = cudaSetDevice(device);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&found, probe);
  cudaSetDevice(current);
  if (error == cudaSuccess) return found.ptxVersion;
  cudaDeviceProp card = {};
  cudaGetDeviceProperties(&card, device);
  cudaGetLastError();  // what is told is not left for others
  throw std::runtime_error("GPU " + std::to_string(device) + " (" + card.name + ", compute capability " +
                           std::to_string(card.major) + "." + std::to_string(card.minor) +
                           ") runs none of this build's kernels: " + cudaGetErrorString(error) +
                           ". `hexad doctor` names what this build was compiled for");
}

}  // namespace hexad::modeling::cuda
