// What CUTLASS answers, as an exception.
#pragma once
#include <cutlass/cutlass.h>

#include <stdexcept>
#include <string>

namespace hexad::modeling::cuda {

// `operation`: "grouped weight gradient"; `what`: "cannot run it".
inline void require_cutlass(cutlass::Status status, const char* operation, const char* what) {
  if (status != cutlass::Status::kSuccess)
    throw std::runtime_error(std::string(operation) + ": CUTLASS " + what + ": " + cutlassGetStatusString(status));
}

}  // namespace hexad::modeling::cuda
