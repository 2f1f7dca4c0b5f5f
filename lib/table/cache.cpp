#include "lib/table/cache.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>

#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/private_file.hpp"
#include "lib/base/sha256.hpp"

namespace hexad::table {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVersion = "3";  // of what is kept: a change that others would misread raises it

// Empty where HOME would have to say it and is not set.
fs::path cache_folder() {
  const auto named = [](const char* name) -> fs::path {
    const char* const value = std::getenv(name);
    return value ? value : "";
  };
  if (const fs::path own = named("HEXAD_CACHE"); !own.empty()) return own / "tables";
  if (const fs::path all = named("XDG_CACHE_HOME"); !all.empty()) return all / "hexad/tables";
  if (const fs::path home = named("HOME"); !home.empty()) return home / ".cache/hexad/tables";
  return {};
}

// A process that writes goes on writing.
bool is_left_behind(const fs::path& part) {
  std::error_code gone;
  const auto written = fs::last_write_time(part, gone);
  return !gone && fs::file_time_type::clock::now() - written > std::chrono::hours(1);
}

// "<path>-<size>-<time>-3.csv.arrow": those of the path that are not of this file as it is, whatever it is read as.
void remove_useless(const fs::path& place) {
  const auto file_of = [](const fs::path& kept) { return kept.string().substr(0, kept.string().find('.')); };
  const std::string name = file_of(place.filename()), of_this_path = name.substr(0, name.find('-') + 1);
  for (const fs::directory_entry& entry : entries_of(place.parent_path())) {
    const fs::path other = entry.path().filename();
    const bool is_part = other.extension() == ".part";
    const bool is_older = !is_part && other.string().starts_with(of_this_path) && file_of(other) != name;
    std::error_code ignored;
    if (is_older || (is_part && is_left_behind(entry.path()))) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

Place place_for(const fs::path& file, const Container& container, const std::string& suffix) {
  try {
    const fs::path folder = cache_folder();
    if (folder.empty()) return {{}, "neither HEXAD_CACHE nor HOME is set"};
    if (fs::exists(folder)) make_private_folder(folder);
    const std::string path = fs::canonical(file);
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return {{}, std::strerror(errno)};
    const std::string digest = sha256_hex(std::as_bytes(std::span(path))).substr(0, 32);
    return {folder / fmt::format("{}-{}-{}_{:09}-{}.{}{}{}", digest, status.st_size, status.st_mtim.tv_sec,
                                 status.st_mtim.tv_nsec, kVersion, name_of(container.form), name_of(container.packing),
                                 suffix),
            ""};
  } catch (const std::exception& error) {
    return {{}, error.what()};
  }
}

void prepare(const Place& place) {
  if (place.file.empty()) fail(ErrorKind::data, "there is no folder for them: {}", place.why_none);
  std::error_code failed;
  fs::create_directories(place.file.parent_path().parent_path(), failed);
  make_private_folder(place.file.parent_path());
  remove_useless(place.file);
}

}  // namespace hexad::table
