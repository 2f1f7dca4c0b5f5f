// Memory that nobody has written holds NaN while this lives, so that an operator that leaves a hole is seen.
#pragma once
#include <ATen/Context.h>

namespace hexad::modeling {

class PoisonedMemory {
 public:
  PoisonedMemory() : context_(at::globalContext()), filled_(context_.deterministicFillUninitializedMemory()) {
    context_.setDeterministicFillUninitializedMemory(true);
    context_.setDeterministicAlgorithms(true, /*warn_only=*/true);  // the other half of the switch
  }
  ~PoisonedMemory() {
    context_.setDeterministicAlgorithms(false, false);
    context_.setDeterministicFillUninitializedMemory(filled_);
  }

 private:
  at::Context& context_;
  bool filled_;
};

}  // namespace hexad::modeling
