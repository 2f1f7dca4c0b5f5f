// DLTensor and at::Tensor views of the same memory.
#pragma once
#include <ATen/core/Tensor.h>
#include <hexad/abi.h>

namespace hexad::modeling {

// Borrows; contiguous. Throws sdk::Error for a null pointer; `name` is for the message.
at::Tensor from_dl(const DLTensor* tensor, const char* name);

// Borrows the tensor's memory and shape: both must outlive the view. The tensor is contiguous.
DLTensor to_dl(const at::Tensor& tensor);

DLDataType dl_dtype(at::ScalarType dtype);

}  // namespace hexad::modeling
