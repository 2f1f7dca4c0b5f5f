#include "plugins/sglang_bridge/generator.hpp"

HEXAD_CPP_GENERATOR(hexad::sglang::Generator, "sglang_bridge", "1.0.0", "Apache-2.0")
