// The libraries that a shared object brings along: what it needs and where that is looked for.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "lib/base/file/resolved_file.hpp"

namespace hexad::elf {

struct Links {
  std::vector<std::string> needed;     // DT_NEEDED, and what filters name (DT_AUXILIARY, DT_FILTER)
  std::vector<std::string> run_paths;  // of DT_RUNPATH, each folder as it is written; "" is the working directory
  std::vector<std::string> rpaths;  // of DT_RPATH, which counts where there is no DT_RUNPATH, also for what is needed
};

// Reads the dynamic section and no more of the file, however large it is. Throws Error(plugin) naming it where it is no
// 64-bit ELF file or a table lies outside of it.
Links read_links(const ResolvedFile& file);

// What others could have changed of the libraries that `library` needs and that its run paths find, and that those need
// in turn: a file, the way to it, or a folder of a run path that is looked into before ("liba.so needs libx.so: ...").
// A path that counts from the working directory is told, wherever that is. Nothing if nobody could. What the system
// finds elsewhere, by LD_LIBRARY_PATH or in its own folders, is the user's and root's. Throws Error(plugin) where a
// library cannot be read.
std::optional<std::string> insecure_needed(const ResolvedFile& library);

}  // namespace hexad::elf
