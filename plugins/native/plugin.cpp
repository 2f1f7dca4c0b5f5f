#include "plugins/native/generator_table.hpp"

HEXAD_GENERATOR_PLUGIN("native", "1.0.0", "Apache-2.0", hexad::native::kGeneratorTable)
