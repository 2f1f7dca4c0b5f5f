// A plugin's manifest, before a byte of its code is mapped: its own fields, and the keys, facts and rules that it
// declares.
#include "core/config/declaration/outline.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] {
    const plugin::Manifest manifest = plugin::parse_manifest(fuzz::text_of(data, size), "manifest");
    fuzz::attempt([&] { config::read_outline(manifest, "manifest"); });
    fuzz::attempt([&] { config::read_keys(manifest, "manifest"); });
    config::read_declaration(manifest, "manifest");
  });
  return 0;
}
