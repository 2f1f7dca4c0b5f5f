// Storage that shrinks to nothing and comes back under the tensors that refer to it: leaves of weights that are
// gathered while they are used, in graphs that outlive the gathering.
#pragma once
#include <ATen/core/Tensor.h>

namespace hexad::modeling {

void free_storage(const at::Tensor& tensor);
// `tensor` spans its storage. Nothing happens when it is there.
void allocate_storage(const at::Tensor& tensor);
bool has_storage(const at::Tensor& tensor);

}  // namespace hexad::modeling
