#include "plugins/megatron/backend.hpp"

HEXAD_CPP_BACKEND(hexad::megatron::Backend, "megatron", "0.1.0", "Apache-2.0")
