# NVIDIA GPUs: nvcc for kernels, and the CUDA half of LibTorch. Compiles and links where no GPU is present.
set(HEXAD_CUDA_DIR /usr/local/cuda CACHE PATH "CUDA toolkit 13.0")
if(NOT EXISTS ${HEXAD_CUDA_DIR}/bin/nvcc)
  message(FATAL_ERROR "CUDA toolkit not found at ${HEXAD_CUDA_DIR}. Install it, or set -DHEXAD_CUDA_DIR=<folder with bin/nvcc>")
endif()
if(NOT EXISTS ${HEXAD_TORCH_DIR}/lib/libtorch_cuda.so)
  message(FATAL_ERROR "${HEXAD_TORCH_DIR} is a LibTorch without CUDA: set -DHEXAD_TORCH_DIR to the cu130 wheel's torch folder")
endif()
set(CMAKE_CUDA_COMPILER ${HEXAD_CUDA_DIR}/bin/nvcc)
set(CMAKE_CUDA_ARCHITECTURES 90a CACHE STRING "GPU architectures")
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
enable_language(CUDA)

target_include_directories(hexad_torch SYSTEM INTERFACE ${HEXAD_CUDA_DIR}/include)
target_compile_definitions(hexad_torch INTERFACE HEXAD_CUDA USE_C10D_NCCL)
# Nothing names a symbol of torch_cuda in most targets, yet its registrations must be loaded: --no-as-needed.
target_link_options(hexad_torch INTERFACE -Wl,-rpath,${HEXAD_CUDA_DIR}/lib64 -Wl,-rpath-link,${HEXAD_CUDA_DIR}/lib64)
target_link_libraries(hexad_torch INTERFACE
  -Wl,--no-as-needed ${HEXAD_TORCH_DIR}/lib/libtorch_cuda.so ${HEXAD_TORCH_DIR}/lib/libc10_cuda.so -Wl,--as-needed
  ${HEXAD_CUDA_DIR}/lib64/libcudart.so)
