#include <ATen/Context.h>

namespace hexad::modeling {
namespace {

// cuBLAS splits the sum of a product with few tiles among processors, and LibTorch lets it add the parts in the
// output's 16 bits: decoding's products would then lie several times farther from fp32 than training's.
[[maybe_unused]] const bool parts_are_added_in_fp32 = [] {
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  at::globalContext().setAllowFP16ReductionCuBLAS(false);
  return true;
}();

}  // namespace
}  // namespace hexad::modeling
