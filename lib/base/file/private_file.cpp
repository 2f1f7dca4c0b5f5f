#include "lib/base/file/private_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "lib/base/error.hpp"
#include "lib/base/file/input_file.hpp"

namespace hexad {

namespace fs = std::filesystem;

namespace {

constexpr std::streamsize kMostBytes = 1 << 16;

struct Folder {
  int descriptor = -1;
  ~Folder() { ::close(descriptor); }
};

// Throws unless the open descriptor is what `wanted` says (S_IFDIR, S_IFREG), and this user's alone.
void check(const fs::path& path, int descriptor, mode_t wanted) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) refuse_file(path.string(), "cannot be read", errno);
  if ((status.st_mode & S_IFMT) != wanted)
    fail(ErrorKind::data, "{} is no {}", path.string(), wanted == S_IFDIR ? "folder" : "file");
  if (status.st_uid != ::geteuid())
    fail(ErrorKind::data, "{} belongs to user {}, wanted user {}", path.string(), status.st_uid, ::geteuid());
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    fail(ErrorKind::data, "{} is open to others (mode {:04o}), wanted {}", path.string(), status.st_mode & 07777,
         wanted == S_IFDIR ? "0700" : "0600");
}

[[noreturn]] void refuse_open(const fs::path& path, const char* wanted) {
  const int reason = errno;
  if (reason == ELOOP) fail(ErrorKind::data, "{} is a link, wanted a {}", path.string(), wanted);
  if (reason == ENOTDIR) fail(ErrorKind::data, "{} is a link or a file, wanted a {}", path.string(), wanted);
  refuse_file(path.string(), "cannot be opened", reason);
}

// Its descriptor, or -1 where it is not there.
int open_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0 && errno != ENOENT) refuse_open(folder, "folder");
  return descriptor;
}

}  // namespace

void make_private_folder(const fs::path& folder) {
  for (int tried = 0; tried < 10; ++tried) {  // somebody may remove it between the two calls
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) refuse_file(folder.string(), "cannot be made", errno);
    const Folder opened{open_folder(folder)};
    if (opened.descriptor >= 0) return check(folder, opened.descriptor, S_IFDIR);
  }
  refuse_file(folder.string(), "cannot be made", ENOENT);
}

std::optional<std::string> read_private_file(const fs::path& folder, const std::string& name) {
  const Folder opened{open_folder(folder)};
  if (opened.descriptor < 0) return std::nullopt;
  check(folder, opened.descriptor, S_IFDIR);
  const fs::path path = folder / name;
  const int file = ::openat(opened.descriptor, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return std::nullopt;
  if (file < 0) refuse_open(path, "file");
  InputFile in(path, file);
  check(path, file, S_IFREG);
  std::string text(kMostBytes, '\0');
  in.read(text.data(), kMostBytes);
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

}  // namespace hexad
