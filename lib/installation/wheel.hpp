// Libraries of Python wheels that ours are linked with: found where pip, `hexad setup` or tools/setup.sh has put them,
// and opened without Python.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hexad::installation {

struct Wheel {
  std::string name;     // of the wheel, and of its folder: "torch"
  std::string version;  // the one that ours are built with: "2.11.0"
  std::string library;  // in that folder, by which it is known: "lib/libtorch_cpu.so"
  std::string cache;    // the folder that it is unpacked in where there is no Python: "libtorch-2.11.0"
};
const Wheel& libtorch();  // of a build without LibTorch, its version is empty
const Wheel& arrow();

// A folder like site-packages that has the wheel in it.
struct Site {
  std::filesystem::path folder;
  std::string version;  // of the wheel there: "2.11.0+cpu"; empty where nothing says it
  // Where libraries of the wheel lie, and of those that pip installs with it (nvidia/*/lib).
  std::vector<std::filesystem::path> libraries(const Wheel& wheel) const;
};

// The folders that are looked through, in order: of the Python that the program is installed in; lib/hexad/wheels of
// its own; what `hexad setup` and tools/setup.sh unpack below the cache (HEXAD_CACHE, XDG_CACHE_HOME/hexad or
// ~/.cache/hexad); Pythons of the user and of the machine: ~/.local, /usr/local, /usr. `home`: of the program
// (home.hpp).
std::vector<std::filesystem::path> sites(const std::filesystem::path& home, const Wheel& wheel);

// The first of them that has the wheel in the version that ours are built with, else the first that has another one;
// nothing: none has any.
std::optional<Site> find(const std::vector<std::filesystem::path>& sites, const Wheel& wheel);

// Where `ours`, a library of ours that is linked with the wheel, gets it from: a folder of LD_LIBRARY_PATH or of its
// run paths, where the loader looks by itself, else one of `sites`, as find() has it. Throws Error(config) in one line:
// the wheel is in none of them, or in another version alone than the one that ours are built with, which names both.
Site require(const std::filesystem::path& ours, const Wheel& wheel, const std::vector<std::filesystem::path>& sites);

// Has the libraries of the wheel that `ours` needs in this process (dlopen with `mode`), so that the loader takes them
// wherever they lie. Throws as require(), and Error(config) with the loader's reason.
void open_needed(const std::filesystem::path& ours, const Wheel& wheel, int mode);

}  // namespace hexad::installation
