#include "lib/process/private_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "lib/process/program_folders.hpp"

namespace hexad::process {

namespace fs = std::filesystem;

PrivateFolder::PrivateFolder(const std::string& name) : path_(fs::path(temporary_folder()) / (name + "-XXXXXX")) {
  if (!::mkdtemp(path_.data()))
    throw std::system_error(errno, std::generic_category(), "cannot make a folder in " + temporary_folder());
}

PrivateFolder::~PrivateFolder() {
  std::error_code none;
  const auto open_up = [&](const fs::path& folder) { fs::permissions(folder, fs::perms::owner_all, none); };
  open_up(path_);
  // Before it is entered.
  for (fs::recursive_directory_iterator each(path_, fs::directory_options::skip_permission_denied, none), end;
       !none && each != end; each.increment(none)) {
    if (each->symlink_status(none).type() == fs::file_type::directory) open_up(each->path());
    none.clear();
  }
  fs::remove_all(path_, none);
}

}  // namespace hexad::process
