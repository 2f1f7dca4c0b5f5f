# LibTorch as the pinned wheel carries it: hexad_use_torch(TARGET) adds headers, libraries and the one precompiled header.
if(DEFINED ENV{HEXAD_CACHE})
  set(hexad_cache $ENV{HEXAD_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(hexad_cache $ENV{XDG_CACHE_HOME}/hexad)
else()
  set(hexad_cache $ENV{HOME}/.cache/hexad)
endif()
set(HEXAD_TORCH_DIR ${hexad_cache}/libtorch-2.11.0/torch CACHE PATH "LibTorch: folder with include/ and lib/")
if(NOT EXISTS ${HEXAD_TORCH_DIR}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch not found at ${HEXAD_TORCH_DIR}. Run tools/setup.sh, or set -DHEXAD_TORCH_DIR=<folder with include/ and lib/>")
endif()

add_library(hexad_torch INTERFACE)
target_include_directories(hexad_torch SYSTEM INTERFACE
  ${HEXAD_TORCH_DIR}/include ${HEXAD_TORCH_DIR}/include/torch/csrc/api/include)
target_compile_definitions(hexad_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
target_link_directories(hexad_torch INTERFACE ${HEXAD_TORCH_DIR}/lib)
target_link_options(hexad_torch INTERFACE
  -Wl,-rpath,${HEXAD_TORCH_DIR}/lib -Wl,--allow-shlib-undefined)
target_link_libraries(hexad_torch INTERFACE torch_cpu c10)
if(HEXAD_CUDA)
  include(HexadCuda)
endif()

add_library(hexad_torch_pch OBJECT ${CMAKE_SOURCE_DIR}/modeling/torch_pch.cpp)
target_link_libraries(hexad_torch_pch PUBLIC hexad_torch)
target_precompile_headers(hexad_torch_pch PRIVATE ${CMAKE_SOURCE_DIR}/modeling/torch_pch.hpp)

function(hexad_use_torch target)
  target_link_libraries(${target} PUBLIC hexad_torch)
  target_precompile_headers(${target} REUSE_FROM hexad_torch_pch)
  target_compile_options(${target} PRIVATE -fPIC)  # programs too: the header was compiled with it, and -fPIE differs
endfunction()
