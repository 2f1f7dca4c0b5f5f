// The checks of a plugin file that need none of its code.
#pragma once
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "core/manifest/discovery.hpp"
#include "core/manifest/manifest.hpp"
#include "core/manifest/options.hpp"
#include "lib/base/file/resolved_file.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/elf/elf.hpp"
#include "runtime/runtime.h"

namespace hexad::plugin {

// True for a plugin of which there is the manifest alone: it has no digest, and its library is not there.
bool is_unbuilt(const Candidate& candidate);

// Throws Error(plugin) unless the exports hold hexad_plugin_query_v1 and no other hexad_* symbol but query functions of
// other majors.
void check_exports(const elf::Info& info, const std::string& path);

// Those that do not read the library, in this order: that it is built, host ABI, architecture, place and permissions,
// pin, size, the record of verification. Returns the file. Throws Error(plugin).
ResolvedFile check_manifest(const Candidate& candidate, const Options& options);

// These, then digest, ELF, versions of LibTorch, CUDA and glibc. The versions of LibTorch and CUDA are those of
// this process; a plugin that gets a process of its own (`own_process`) may bring others. Returns the file that all of
// this is true of, whatever its name means by then. Throws Error(plugin).
ResolvedFile check_before_load(const Candidate& candidate, const Options& options, const hexad_runtime* runtime,
                               bool own_process = false);

// Remembers what a loaded plugin brought into the process, so that a second one that needs another LibTorch is refused.
void note_loaded(const Manifest& manifest);

// A line on stderr for every step of loading, with HEXAD_PLUGIN_DEBUG=1.
template <typename... Args>
void trace(fmt::format_string<Args...> format, Args&&... args) {
  const char* debug = std::getenv("HEXAD_PLUGIN_DEBUG");
  if (debug && *debug == '1')
    std::fputs(fmt::format("plugin: {}\n", one_line(fmt::format(format, std::forward<Args>(args)...))).c_str(), stderr);
}

// Which plugins have passed the conformance kit, by the digest of their file. Under $XDG_CACHE_HOME (or
// ~/.cache)/hexad/verified, which only its owner may write; one empty file a digest and ABI minor.
void record_verified(const std::string& sha256);
bool is_verified(const std::string& sha256);

}  // namespace hexad::plugin
