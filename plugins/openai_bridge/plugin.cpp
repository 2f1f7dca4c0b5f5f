#include "plugins/openai_bridge/generator.hpp"

HEXAD_CPP_GENERATOR(hexad::openai::Generator, "openai_bridge", "1.0.0", "Apache-2.0")
