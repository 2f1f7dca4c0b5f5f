// What libFuzzer calls, once an input; replay.cpp calls it too. An error of ours is an answer; all else is a finding.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "lib/base/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace hexad::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// An input of two texts: before and after the first NUL byte; the second one is empty where there is none.
inline std::pair<std::string_view, std::string_view> two_texts(const uint8_t* data, size_t size) {
  const std::string_view whole = text_of(data, size);
  const size_t nul = whole.find('\0');
  if (nul == whole.npos) return {whole, {}};
  return {whole.substr(0, nul), whole.substr(nul + 1)};
}

// Does `work`, which may refuse the input.
template <typename Work>
void attempt(Work&& work) {
  try {
    work();
  } catch (const Error&) {
  }
}

}  // namespace hexad::fuzz
