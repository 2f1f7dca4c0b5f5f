// What the host and the GPU do, operator by operator, as a Chrome trace (chrome://tracing, Perfetto).
#pragma once
#include <hexad/abi.h>

namespace hexad::runtime {

// As hexad_runtime's. Both on the thread whose calls are traced.
hexad_code trace_start();
hexad_code trace_save(const char* path);

}  // namespace hexad::runtime
