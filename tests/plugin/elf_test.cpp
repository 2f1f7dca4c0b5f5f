// The ELF files of plugins: what is read of them, and which exports are theirs.
#include "lib/elf/elf.hpp"

#include <random>

#include "core/plugin/precheck.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using namespace hexad::plugin;
using namespace plugin_test;

namespace {

std::string check(const std::string& bytes) {
  return error_of([&] { check_exports(elf::read(std::as_bytes(std::span(bytes)), "x.so"), "x.so"); });
}

}  // namespace

TEST_CASE("exports are read from a stripped library, with either hash table") {
  const PluginFolder folder;
  for (const char* style : {"gnu", "sysv", "both"}) {
    const fs::path library = folder.compile("toy", fmt::format("-s -Wl,--hash-style={}", style));
    const std::string bytes = read_text(library);
    const elf::Info info = elf::read(std::as_bytes(std::span(bytes)), library.string());
    CHECK(info.exports == std::vector<std::string>{"hexad_plugin_query_v1"});
    CHECK(check(bytes) == "(no error)");
  }
}

TEST_CASE("what is no plugin is named") {
  const PluginFolder folder;
  CHECK(check("") == "x.so: the ELF header reaches past the end of the file (0 bytes); copy incomplete on this host?");
  CHECK(check(std::string(100, 'x')) == "x.so: not an ELF file");
  std::string bytes = read_text(folder.compile("toy"));
  std::string other = bytes;
  other[18] = 0x28;  // e_machine: 32-bit Arm
  CHECK(contains(check(other), "x.so: built for another machine (ELF class 2, machine 40), this one is 64-bit"));
  other = bytes;
  other[16] = 1;  // e_type: relocatable
  CHECK(check(other) == "x.so: not a shared object (ELF type 1)");
}

TEST_CASE("exports, stack and relocations are checked") {
  const PluginFolder folder;
  const auto built = [&](const std::string& flags) { return check(read_text(folder.compile("toy", flags))); };
  CHECK(built("-DQUERY=other") == "x.so: not a hexad plugin (it does not export hexad_plugin_query_v1)");
  CHECK(
      built("-DQUERY=hexad_plugin_query_v2") ==
      "x.so: not a hexad plugin for this engine (no hexad_plugin_query_v1; it exports hexad_plugin_query_v2: built for "
      "ABI 2, this engine supports 1)");
  CHECK(built("'-DEXTRA=__attribute__((visibility(\"default\"))) int hexad_mine;'") ==
        "x.so: exports hexad_mine beside hexad_plugin_query_v1, the one symbol that a plugin may. Build it with "
        "hexad_add_plugin, which hides the rest");
  CHECK(built("-Wl,-z,execstack") == "x.so: asks for an executable stack. Link with -Wl,-z,noexecstack");
}

TEST_CASE("no truncation and no changed byte crashes the reader") {
  const PluginFolder folder;
  const std::string bytes = read_text(folder.compile("toy", "-s"));
  size_t refused = 0;
  for (size_t size = 0; size < bytes.size(); size += 61) refused += check(bytes.substr(0, size)) != "(no error)";
  CHECK(refused > 0);
  std::mt19937 random(1);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string changed = bytes;
    for (int i = 0; i < 3; ++i)
      changed[random() % std::min<size_t>(changed.size(), 4096)] = static_cast<char>(random());
    check(changed);
  }
}
