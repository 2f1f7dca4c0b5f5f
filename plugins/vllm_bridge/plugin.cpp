#include "plugins/vllm_bridge/generator.hpp"

HEXAD_CPP_GENERATOR(hexad::vllm::Generator, "vllm_bridge", "1.0.0", "Apache-2.0")
