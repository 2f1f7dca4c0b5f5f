// Whether the LibTorch that workers will open is there, before any of them is started.
#pragma once

namespace hexad::inference {

// Throws Error(config) in one line where there is none, or another version than the one that this program is built
// with (lib/installation/wheel.hpp). A build without LibTorch wants none.
void require_libtorch();

}  // namespace hexad::inference
