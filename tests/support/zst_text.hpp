// What frames of zstd hold, as one text.
#pragma once
#include <filesystem>
#include <string>

#include "lib/zst/frame.hpp"

namespace test_support {

// Until `most` bytes are read.
inline std::string text_of(const std::filesystem::path& file, size_t most) {
  std::string text;
  hexad::zst::each_part(file, [&](std::string_view part) {
    text.append(part.substr(0, most - text.size()));
    return text.size() < most;
  });
  return text;
}

}  // namespace test_support
