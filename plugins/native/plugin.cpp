#include "plugins/native/generator.hpp"

HEXAD_CPP_GENERATOR(hexad::native::Generator, "native", "1.0.0", "Apache-2.0")
