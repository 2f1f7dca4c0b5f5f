// A build without code for sm_90a: nothing here is reached.
#include <stdexcept>

#include "modeling/op/cuda/batch_invariant/hopper/product.hpp"
#include "modeling/op/cuda/expert/hopper/grouped_gradient.hpp"

namespace hexad::modeling::cuda {
namespace {

[[noreturn]] void absent() {
  throw std::runtime_error("this build has no kernels for sm_90a: configure it with -DCMAKE_CUDA_ARCHITECTURES=90a");
}

}  // namespace

void hopper_product(const InvariantProduct&, CUstream_st*) { absent(); }
int64_t hopper_gradient_scratch(const GroupedGradientCall&) { absent(); }
void add_hopper_gradient(const GroupedGradientCall&, void*, CUstream_st*) { absent(); }

}  // namespace hexad::modeling::cuda
