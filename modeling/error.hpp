// The error of everything in modeling/, which is that of lib/model too: what, where, got, wanted.
#pragma once
#include "lib/model/error.hpp"

namespace hexad::modeling {

using model::Error;
using model::fail;

}  // namespace hexad::modeling
