#include "lib/base/file/numbered_folder.hpp"

#include "lib/base/error.hpp"

namespace hexad {

namespace fs = std::filesystem;

// create_directory tells apart who made it.
fs::path make_numbered_folder(const fs::path& parent, const std::string& name, const std::string& who) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) fail(ErrorKind::data, "{}: cannot make {}: {}", who, parent.string(), error.message());
  for (int number = 1; number < 1'000'000; ++number) {
    fs::path candidate = parent / fmt::format("{}_{:03d}", name, number);
    if (fs::create_directory(candidate, error)) return candidate;
    if (error && error != std::errc::file_exists)
      fail(ErrorKind::data, "{}: cannot make {}: {}", who, candidate.string(), error.message());
  }
  fail(ErrorKind::data, "{}: {} is full of {}_NNN directories", who, parent.string(), name);
}

}  // namespace hexad
