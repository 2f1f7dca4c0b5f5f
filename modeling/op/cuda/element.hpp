// The element types that the kernels take, named without any library's header.
#pragma once

namespace hexad::modeling::cuda {

enum class Element { f32, bf16, f16 };

}  // namespace hexad::modeling::cuda
