// The functions that the host calls, without LibTorch's headers: the plugin's exported symbol is compiled in no time.
#pragma once
#include <hexad/abi.h>

namespace hexad::native {

extern const hexad_generator_vtable kGeneratorTable;

}  // namespace hexad::native
