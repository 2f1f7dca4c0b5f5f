// Where this program is installed: bin/ with the program, and beside it lib/ and share/.
#pragma once
#include <filesystem>

namespace hexad::installation {

// The folder that holds bin/, lib/ and share/: the one above the program's own, without links.
std::filesystem::path home();

// "0.2.0".
const char* version();

// Where files of the user's own lie, beside those of the installation: $XDG_DATA_HOME/hexad, or
// ~/.local/share/hexad. Empty where neither variable says it, and in set-uid programs.
std::filesystem::path user_folder();

}  // namespace hexad::installation
