#include "lib/base/file/folder.hpp"

#include <algorithm>

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

}  // namespace hexad
