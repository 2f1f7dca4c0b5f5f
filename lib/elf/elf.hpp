// What an ELF file says about itself, read from bytes: nothing is mapped, no code runs.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace hexad::elf {

struct Info {
  std::vector<std::string> exports;    // global and weak symbols that .dynsym defines
  std::vector<std::string> imports;    // those that it wants of others
  std::vector<std::string> needed;     // DT_NEEDED
  std::vector<std::string> run_paths;  // of DT_RUNPATH and DT_RPATH; an empty one is the folder of who starts it
  bool bind_now = false;
  bool relro = false;  // what the loader has filled in is read-only afterwards
  bool has_build_id = false;
};

// Reads a shared object for this machine, or a program that is one (PIE). Throws Error(plugin) naming `path` if it is
// no 64-bit ELF shared object for this machine, if a segment or table reaches outside the file (mapping it would raise
// SIGBUS), or if it has text relocations or an executable stack.
Info read(std::span<const std::byte> file, const std::string& path);

}  // namespace hexad::elf
