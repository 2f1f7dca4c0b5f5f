#include "lib/base/file/folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "lib/base/error.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/text.hpp"

namespace hexad {
namespace {

namespace fs = std::filesystem;

void add_below(const fs::path& folder, std::vector<fs::directory_entry>& entries) {
  for (const fs::directory_entry& entry : entries_of(folder)) {
    entries.push_back(entry);
    std::error_code unreadable;
    if (entry.symlink_status(unreadable).type() == fs::file_type::directory) add_below(entry.path(), entries);
  }
}

}  // namespace

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  // An increment that fails ends the loop.
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error))
    entries.push_back(*each);
  if (error) fail(ErrorKind::data, "{}: cannot be listed: {}", folder.string(), error.message());
  std::ranges::sort(entries);
  return entries;
}

std::string listing_of(const fs::path& folder) {
  constexpr size_t kMost = 10;
  std::vector<std::string> names;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : entries_of(folder))
    names.push_back(one_line(entry.path().filename().string()) + (entry.is_directory(unreadable) ? "/" : ""));
  const size_t all = names.size();
  if (all > kMost) names.resize(kMost);
  return all == 0 ? "nothing" : joined(names) + (all > kMost ? fmt::format(" and {} more", all - kMost) : "");
}

std::vector<fs::directory_entry> entries_below(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  add_below(folder, entries);
  return entries;
}

bool is_to_be_read(const fs::directory_entry& entry) {
  std::error_code unreadable;
  const fs::file_type type = entry.status(unreadable).type();
  return type == fs::file_type::regular || type == fs::file_type::not_found || type == fs::file_type::none;
}

void dissolve_folder(const fs::path& folder) {
  std::error_code error, kept;
  std::vector<fs::path> held;
  for (fs::directory_iterator each(folder, error), end; !error && each != end; each.increment(error))
    held.push_back(each->path());
  for (const fs::path& path : held) fs::rename(path, folder.parent_path() / path.filename(), kept);
  fs::remove(folder, kept);
}

std::error_code why_not_made(const fs::path& folder) {
  if (folder.empty()) return std::make_error_code(std::errc::invalid_argument);
  std::error_code error;
  fs::path at = folder.has_filename() || !folder.has_relative_path() ? folder : folder.parent_path();  // "logs/"
  for (bool is_there = true;; is_there = false, at = at.parent_path()) {
    const fs::path shown = at.empty() ? "." : at;
    const fs::file_status status = fs::status(shown, error);
    if (fs::is_directory(status)) return is_there ? std::error_code() : why_nothing_added(shown);
    if (fs::exists(status)) return std::make_error_code(std::errc::not_a_directory);
    if (!fs::status_known(status)) return error;
    if (fs::is_symlink(fs::symlink_status(shown, error))) return std::make_error_code(std::errc::file_exists);
    if (at.empty()) return std::make_error_code(std::errc::no_such_file_or_directory);  // of this process: it is gone
    if (at.filename().native().size() > NAME_MAX) return std::make_error_code(std::errc::filename_too_long);
  }
}

std::error_code why_nothing_added(const fs::path& folder) {
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return {};
  return {errno, std::generic_category()};
}

}  // namespace hexad
