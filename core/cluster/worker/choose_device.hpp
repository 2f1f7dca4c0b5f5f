// What a rank runs on, by cluster.device.
#pragma once
#include <string>

#include "runtime/runtime.h"

namespace hexad::cluster {

// Rank r of `ranks` gets GPU r, on a machine that has one for each; `auto` takes CPUs elsewhere. `runtime`: null in a
// build without LibTorch. Throws Error(config) for 'cuda' without enough GPUs, the same on every rank.
DLDevice choose_device(const hexad_runtime* runtime, const std::string& wanted, int rank, int ranks);

}  // namespace hexad::cluster
