#include "plugins/dtensor/backend.hpp"

HEXAD_CPP_BACKEND(hexad::dtensor::Backend, "dtensor", "0.1.0", "Apache-2.0")
