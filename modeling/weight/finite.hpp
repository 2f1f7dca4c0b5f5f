// Weights that are no numbers.
#pragma once
#include <string>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// Throws Error naming the weight, its file and the first element that is nan or infinite.
void require_finite(const at::Tensor& tensor, const std::string& name, const std::string& file);

}  // namespace hexad::modeling
