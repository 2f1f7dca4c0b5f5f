#include "lib/base/file/numbered_folder.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"

namespace hexad {
namespace {

namespace fs = std::filesystem;

constexpr int kNumbers = 1'000'000;

fs::path numbered(const fs::path& parent, const std::string& name, int number) {
  return parent / fmt::format("{}_{:03d}", name, number);
}

[[noreturn]] void refuse(const std::string& who, const fs::path& folder, const std::error_code& error) {
  fail(ErrorKind::data, "{}: cannot make {}: {}", who, folder.string(), error.message());
}

[[noreturn]] void refuse_full(const std::string& who, const fs::path& parent, const std::string& name) {
  fail(ErrorKind::data, "{}: {} is full of {}_NNN directories", who, parent.string(), name);
}

}  // namespace

// create_directory tells apart who made it.
fs::path make_numbered_folder(const fs::path& parent, const std::string& name, const std::string& who) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) refuse(who, parent, error);
  for (int number = 1; number < kNumbers; ++number) {
    fs::path candidate = numbered(parent, name, number);
    if (fs::create_directory(candidate, error)) return candidate;
    if (error && error != std::errc::file_exists) refuse(who, candidate, error);
  }
  refuse_full(who, parent, name);
}

void require_numbered_folder(const fs::path& parent, const std::string& name, const std::string& who) {
  std::error_code unreadable;
  if (const std::error_code error = why_not_made(parent)) refuse(who, parent, error);
  if (!fs::is_directory(parent, unreadable)) return;
  for (int number = 1; number < kNumbers; ++number) {
    const fs::path candidate = numbered(parent, name, number);
    if (fs::exists(fs::symlink_status(candidate, unreadable))) continue;
    if (const std::error_code error = why_nothing_added(parent)) refuse(who, candidate, error);
    return;
  }
  refuse_full(who, parent, name);
}

}  // namespace hexad
