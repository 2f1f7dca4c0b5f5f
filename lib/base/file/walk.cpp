#include "lib/base/file/walk.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "lib/base/file/permissions.hpp"

namespace hexad {
namespace {

constexpr int kMostLinks = 40;  // as the kernel

// The names of a path, without the root and what leads nowhere.
std::deque<std::string> names_of(const std::filesystem::path& path) {
  std::deque<std::string> names;
  for (const std::filesystem::path& part : path.relative_path())
    if (!part.empty() && part != ".") names.push_back(part.string());
  return names;
}

}  // namespace

Walk::Walk(const std::filesystem::path& name, bool trusted) : trusted_(trusted) {
  std::error_code error;
  rest_ = names_of(name.is_absolute() ? name : std::filesystem::current_path(error) / name);
  Step root{::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), "", {}};
  if (error || root.descriptor < 0 || ::fstat(root.descriptor, &root.status) != 0)
    reason_ = error ? error.value() : errno;
  steps_.push_back(root);
  if (!trusted_) problem_ = problem_at(0, false);
  while (reason_ == 0 && !rest_.empty()) {
    const std::string part = std::move(rest_.front());
    rest_.pop_front();
    if (!go_to(part)) reason_ = errno;
  }
}

Walk::~Walk() {
  while (!steps_.empty()) leave();
}

void Walk::leave() {
  if (steps_.back().descriptor >= 0) ::close(steps_.back().descriptor);
  steps_.pop_back();
}

std::filesystem::path Walk::path_of(size_t step) const {
  std::filesystem::path path = "/";
  for (size_t i = 1; i <= step; ++i) path /= steps_[i].name;
  return path;
}

std::optional<std::string> Walk::problem_at(size_t step, bool holder) const {
  const std::string what = writable_by_others(steps_[step].descriptor, steps_[step].status, holder);
  return what.empty() ? std::nullopt : std::optional(path_of(step).string() + " " + what);
}

// One entry of the folder that is open; false leaves the reason in errno.
bool Walk::go_to(const std::string& part) {
  if (!S_ISDIR(steps_.back().status.st_mode)) return errno = ENOTDIR, false;
  if (part == "..") {
    if (steps_.size() > 1) leave();  // the root is its own parent
    return true;
  }
  Step step{::openat(steps_.back().descriptor, part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC), part, {}};
  if (step.descriptor < 0) return false;
  steps_.push_back(step);  // which closes it
  if (::fstat(step.descriptor, &steps_.back().status) != 0) return false;
  const bool link = S_ISLNK(steps_.back().status.st_mode);
  const size_t last = steps_.size() - 1;
  if (!trusted_ && !problem_ && link && rest_.empty()) problem_ = problem_at(last - 1, true);
  if (!trusted_ && !problem_) problem_ = problem_at(last, false);
  if (!link) return true;
  const bool followed = follow(step.descriptor);
  const int reason = errno;
  leave();
  if (followed && !rest_.empty() && rest_.front() == "/") {
    rest_.pop_front();
    while (steps_.size() > 1) leave();
  }
  return errno = reason, followed;
}

// Puts the target of a link before the rest, and "/" before that where it begins at the root.
bool Walk::follow(int link) {
  if (++links_ > kMostLinks) return errno = ELOOP, false;
  char target[PATH_MAX];
  const ssize_t size = ::readlinkat(link, "", target, sizeof target);
  if (size < 0) return false;
  if (size == 0 || size == sizeof target) return errno = size == 0 ? ENOENT : ENAMETOOLONG, false;
  const std::filesystem::path path(std::string(target, static_cast<size_t>(size)));
  std::deque<std::string> names = names_of(path);
  if (path.is_absolute()) names.push_front("/");
  rest_.insert(rest_.begin(), names.begin(), names.end());
  return true;
}

std::optional<std::string> Walk::insecure(bool as_folder) const {
  if (trusted_ || problem_) return problem_;
  const size_t last = steps_.size() - 1;
  // Where the way ended early, somebody could make what is missing.
  const size_t holder = as_folder || reason_ != 0 || last == 0 ? last : last - 1;
  for (size_t i = holder; i <= last; ++i)
    if (auto problem = problem_at(i, true)) return problem;
  return std::nullopt;
}

}  // namespace hexad
