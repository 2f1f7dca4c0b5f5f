// What this program was built as.
#pragma once
#include <string>
#include <vector>

namespace hexad::doctor {

struct Build {
  std::string version;                          // "0.1.0"
  std::string commit = "";                      // of the checkout; empty where there was none
  std::string libtorch = "";                    // "2.11.0"; empty: built without LibTorch
  std::string cuda = "";                        // "13.0.48"; empty: built without CUDA
  std::vector<std::string> architectures = {};  // of kernels, as CMake names them: "90a"

  // The least driver that serves this CUDA, by its first number: 580. 0: without CUDA, or of a CUDA not known here.
  int least_driver() const;
};

Build this_build(const std::string& commit);

// Whether kernels of one of these architectures run on a card of this compute capability: "90" and "90-virtual" on 9.0
// and all that are newer, "90-real" on 9.0 and later ones of 9, "100f" on 10.0 and later ones of 10, "90a" on 9.0
// alone. "all", "all-major" and "native" on all.
bool has_kernels(const std::vector<std::string>& architectures, int major, int minor);

}  // namespace hexad::doctor
