// Sizes for compute-sanitizer, under which a kernel takes hundreds of times as long.
#pragma once
#include <cstdlib>

// Whether tools/sanitize_gpu.sh runs this program. Cases leave out shapes then that differ in nothing but their size.
inline bool under_sanitizer() { return std::getenv("HEXAD_UNDER_SANITIZER") != nullptr; }
