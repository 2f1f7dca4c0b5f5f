// Declarations of gloo that c10d's ProcessGroupGloo.hpp names; the code is inside libtorch_cpu.so.
#pragma once
#define GLOO_STORE_HAS_STORE_V2 1
