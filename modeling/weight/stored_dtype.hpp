// What lib/tensorfile says, in terms of LibTorch and of modeling.
#pragma once
#include <optional>

#include <c10/core/ScalarType.h>

#include "lib/base/error.hpp"
#include "lib/tensorfile/safetensors_dtype.hpp"
#include "modeling/error.hpp"

namespace hexad::modeling {

// Nothing for what no model here is made of: unsigned integers of 16 bits and more, and eight-bit floats, which mean
// nothing without their scales.
std::optional<at::ScalarType> scalar_type(tensorfile::DType dtype);
// Throws Error for a dtype of which scalar_type makes none.
tensorfile::DType stored_dtype(at::ScalarType dtype);

// body(), whose hexad::Error leaves as the Error of modeling.
template <typename Body>
decltype(auto) with_tensorfile(Body&& body) {
  try {
    return body();
  } catch (const hexad::Error& error) {
    throw Error(error.what());
  }
}

}  // namespace hexad::modeling
