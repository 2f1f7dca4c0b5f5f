// A safetensors file: its header, and the values of the tensors in it.
#include "lib/tensorfile/safetensors.hpp"
#include "lib/tensorfile/safetensors_header.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] {
    const auto header = tensorfile::parse_safetensors_header(std::as_bytes(std::span(data, size)), "file");
    for (const tensorfile::SafetensorsEntry& entry : header.entries) {
      fuzz::attempt([&] { tensorfile::to_float32(entry); });
      fuzz::attempt([&] { tensorfile::require_finite(entry, "file"); });
    }
  });
  return 0;
}
