# LibTorch as the pinned wheel carries it: hexad_use_torch(TARGET) adds headers, libraries and the one precompiled
# header.
set(HEXAD_TORCH_DIR ${hexad_cache}/libtorch-2.11.0/torch CACHE PATH "LibTorch: folder with include/ and lib/")
if(NOT EXISTS ${HEXAD_TORCH_DIR}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "LibTorch not found at ${HEXAD_TORCH_DIR}. Run tools/setup.sh, or set -DHEXAD_TORCH_DIR=<folder "
      "with include/ and lib/>")
endif()

file(STRINGS ${HEXAD_TORCH_DIR}/include/torch/headeronly/version.h HEXAD_TORCH_VERSION
  REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
list(TRANSFORM HEXAD_TORCH_VERSION REPLACE "[^0-9]" "")
list(JOIN HEXAD_TORCH_VERSION "." HEXAD_TORCH_VERSION)

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

# A precompiled header serves sources of its own optimisation level only.
function(hexad_torch_header name)
  add_library(${name} OBJECT ${CMAKE_SOURCE_DIR}/modeling/torch_pch.cpp)
  target_link_libraries(${name} PUBLIC hexad_torch)
  target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/modeling/torch_pch.hpp)
  # The header needs a source beside it, whose object is linked by nobody: preprocessing is quicker than compiling.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/modeling/torch_pch.cpp PROPERTIES COMPILE_OPTIONS -E)
endfunction()
hexad_torch_header(hexad_torch_pch)
if(HEXAD_TESTS)
  hexad_torch_header(hexad_torch_control_pch)
  hexad_control_code(hexad_torch_control_pch)
endif()

# CONTROL: code that is never hot (hexad_control_code).
function(hexad_use_torch target)
  cmake_parse_arguments(arg "CONTROL" "" "" ${ARGN})
  target_link_libraries(${target} PUBLIC hexad_torch)
  if(arg_CONTROL)
    hexad_control_code(${target})
    target_precompile_headers(${target} REUSE_FROM hexad_torch_control_pch)
  else()
    target_precompile_headers(${target} REUSE_FROM hexad_torch_pch)
  endif()
  target_compile_options(${target} PRIVATE -fPIC)  # programs too: the header was compiled with it, and -fPIE differs
endfunction()
