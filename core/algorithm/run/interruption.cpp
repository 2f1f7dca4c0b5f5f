#include "core/algorithm/run/interruption.hpp"

#include <algorithm>

#include "lib/base/file/folder.hpp"

namespace hexad::algorithm {
namespace {

namespace fs = std::filesystem;

// Processes of the run that end just now may add a file meanwhile.
void remove_whole(const fs::path& folder) {
  std::error_code error;
  for (int attempt = 0; attempt < 5 && fs::exists(fs::symlink_status(folder, error)); ++attempt)
    fs::remove_all(folder, error);
}

}  // namespace

void Interruption::begin() {
  const std::scoped_lock lock(mutex_);
  has_trained = has_unsaved = false;
  made_.clear();
}

void Interruption::trained() {
  const std::scoped_lock lock(mutex_);
  has_trained = true;
}

void Interruption::will_make(const fs::path& path) {
  std::vector<Made> missing;
  std::error_code error;
  for (fs::path at = fs::absolute(path, error).lexically_normal(); at.has_relative_path(); at = at.parent_path()) {
    if (fs::exists(fs::symlink_status(at, error))) break;
    missing.push_back({at, Kind::empty});
  }
  const std::scoped_lock lock(mutex_);
  made_.insert(made_.end(), missing.rbegin(), missing.rend());
}

void Interruption::has_made(const fs::path& folder) {
  const std::scoped_lock lock(mutex_);
  made_.push_back({folder, Kind::whole});
}

void Interruption::has_filled(const fs::path& folder) {
  const std::scoped_lock lock(mutex_);
  made_.push_back({folder, Kind::filled});
}

void Interruption::take_back(const std::function<void()>& then) {
  const std::scoped_lock lock(mutex_);
  if (has_trained) return;
  std::error_code error;
  std::for_each(made_.rbegin(), made_.rend(), [&](const Made& made) {
    if (made.kind == Kind::whole) remove_whole(made.path);
    if (made.kind == Kind::filled) dissolve_folder(made.path);
    if (made.kind == Kind::empty) fs::remove(made.path, error);
  });
  made_.clear();
  if (then) then();
}

}  // namespace hexad::algorithm
