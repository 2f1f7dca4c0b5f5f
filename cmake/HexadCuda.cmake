# NVIDIA GPUs: nvcc for kernels, and the CUDA half of LibTorch. Compiles and links where no GPU is present.
set(HEXAD_CUDA_DIR /usr/local/cuda CACHE PATH "CUDA toolkit 13.0")
if(NOT EXISTS ${HEXAD_CUDA_DIR}/bin/nvcc)
  message(FATAL_ERROR "CUDA toolkit not found at ${HEXAD_CUDA_DIR}. Install it, or set -DHEXAD_CUDA_DIR=<folder with "
      "bin/nvcc>")
endif()
if(NOT EXISTS ${HEXAD_TORCH_DIR}/lib/libtorch_cuda.so)
  message(FATAL_ERROR "${HEXAD_TORCH_DIR} is a LibTorch without CUDA: set -DHEXAD_TORCH_DIR to the cu130 wheel's torch "
      "folder")
endif()
set(HEXAD_CUDNN_FRONTEND_DIR ${hexad_cache}/cudnn-frontend-1.32.0/include CACHE PATH "cuDNN frontend 1.32: its headers")
if(NOT EXISTS ${HEXAD_CUDNN_FRONTEND_DIR}/cudnn_frontend.h)
  message(FATAL_ERROR "cuDNN frontend not found at ${HEXAD_CUDNN_FRONTEND_DIR}. Run tools/setup.sh --cuda, or set "
      "-DHEXAD_CUDNN_FRONTEND_DIR=<folder with cudnn_frontend.h>")
endif()
if(NOT EXISTS ${HEXAD_CUDA_DIR}/include/cudnn.h)
  message(FATAL_ERROR "cudnn.h not found in ${HEXAD_CUDA_DIR}/include. Install cuDNN 9 (>= 9.19, with headers) beside "
      "the CUDA toolkit")
endif()
set(HEXAD_FLASHINFER_DIR ${hexad_cache}/flashinfer-0.7.2.post1/flashinfer/data CACHE PATH
  "FlashInfer 0.7.2.post1: its headers")
if(NOT EXISTS ${HEXAD_FLASHINFER_DIR}/include/flashinfer/attention/prefill.cuh OR NOT EXISTS
  ${HEXAD_FLASHINFER_DIR}/cutlass/include/cutlass/cutlass.h)
  message(FATAL_ERROR "FlashInfer and CUTLASS not found at ${HEXAD_FLASHINFER_DIR}. Run tools/setup.sh --cuda, or set "
      "-DHEXAD_FLASHINFER_DIR=<folder with include/flashinfer, cccl and cutlass/include>")
endif()
set(CMAKE_CUDA_COMPILER ${HEXAD_CUDA_DIR}/bin/nvcc)
# A100; the other cards of Ampere; Ada; H100 and H200; B200; Blackwell's other cards, whose PTX is for cards to come.
# -DCMAKE_CUDA_ARCHITECTURES=90a-real is for one kind of card alone, and compiles far faster; 80-virtual runs on every
# card, and is how the generic kernels are tested on an H100.
set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90a-real 100-real 120 CACHE STRING "GPU architectures")
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know how nvcc is told of C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

target_include_directories(hexad_torch SYSTEM INTERFACE ${HEXAD_CUDA_DIR}/include)
target_compile_definitions(hexad_torch INTERFACE HEXAD_CUDA USE_C10D_NCCL)
# Nothing names a symbol of torch_cuda in most targets, yet its registrations must be loaded: --no-as-needed.
target_link_options(hexad_torch INTERFACE -Wl,-rpath,${HEXAD_CUDA_DIR}/lib64 -Wl,-rpath-link,${HEXAD_CUDA_DIR}/lib64)
target_link_libraries(hexad_torch INTERFACE
  -Wl,--no-as-needed ${HEXAD_TORCH_DIR}/lib/libtorch_cuda.so ${HEXAD_TORCH_DIR}/lib/libc10_cuda.so -Wl,--as-needed
  ${HEXAD_CUDA_DIR}/lib64/libcudart.so)

# hexad_cuda_kernels(NAME PATTERNS...): a static library of kernels. Raw pointers, sizes and a stream go in; they see no
# LibTorch, so that a file compiles in seconds.
function(hexad_cuda_kernels name)
  file(GLOB kernels CONFIGURE_DEPENDS ${ARGN})
  add_library(${name} STATIC ${kernels})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} PRIVATE SYSTEM ${HEXAD_CUDA_DIR}/include)
  # Six architectures in a wheel: compressed by size they are a third. Profilers want -DCMAKE_CUDA_FLAGS=-lineinfo.
  target_compile_options(${name} PRIVATE -O3 --expt-relaxed-constexpr --compress-mode=size
    -Xcompiler=-fvisibility=hidden)
endfunction()
