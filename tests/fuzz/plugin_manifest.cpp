// A plugin's manifest, before a byte of its code is mapped.
#include "core/manifest/manifest.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] { plugin::parse_manifest(fuzz::text_of(data, size), "manifest"); });
  return 0;
}
