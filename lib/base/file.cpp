#include "lib/base/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <istream>

#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/input_file.hpp"
#include "lib/base/file/open_file.hpp"
#include "lib/base/file/resolved_file.hpp"

namespace hexad {
namespace {

// To its end, with the descriptor's errors.
int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written == 0 ? ENOSPC : errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

// A file that was there already has the rights that it had: takes those of others away. A device stays as it is, and so
// does what a file system without rights has.
int take_from_others(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode) || (status.st_mode & 077) == 0) return 0;
  return ::fchmod(descriptor, status.st_mode & 0700) == 0 || errno == ENOTSUP || errno == EPERM ? 0 : errno;
}

}  // namespace

void refuse_file(const std::string& file, const char* what, int reason) {
  fail(ErrorKind::data, "{}: {}: {}", file, what, std::strerror(reason));
}

std::string read_file(const std::filesystem::path& file) {
  InputFile in(file);
  std::error_code unknown;
  const uintmax_t size = std::filesystem::file_size(file, unknown);  // of what is no regular file: an error, or 0
  std::string content(unknown ? 0 : size, '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<size_t>(in.gcount()));
  // What is more than was told: a pipe, a file of /proc, one that grows.
  for (char more[16384]; in.read(more, sizeof more), in.gcount() > 0;)
    content.append(more, static_cast<size_t>(in.gcount()));
  return content;
}

std::string read_regular_file(const std::filesystem::path& file) {
  return ResolvedFile(file, refuse_file, /*trusted=*/true).text();
}

std::string why_not_written(const std::filesystem::path& file, std::string_view bytes, mode_t mode) {
  const int descriptor = open_to_write(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, mode);
  if (descriptor < 0) return why_not_opened(errno);
  int reason = (mode & 077) == 0 ? take_from_others(descriptor) : 0;
  if (reason == 0) reason = write_all(descriptor, bytes);
  if (::close(descriptor) != 0 && reason == 0) reason = errno;  // a quota's or a network's word may come only now
  return reason == 0 ? "" : std::strerror(reason);
}

bool tells_of_full_disk(std::string_view message) {
  return message.find(std::strerror(ENOSPC)) != message.npos || message.find(std::strerror(EDQUOT)) != message.npos;
}

void write_file(const std::filesystem::path& file, std::string_view bytes) {
  if (const std::string reason = why_not_written(file, bytes); !reason.empty())
    fail(ErrorKind::data, "{}: cannot be written: {}", file.string(), reason);
}

void write_own_file(const std::filesystem::path& file, std::string_view bytes) {
  if (const std::string reason = why_not_written(file, bytes, 0600); !reason.empty())
    fail(ErrorKind::data, "{}: cannot be written: {}", file.string(), reason);
}

void sync_path(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(ErrorKind::data, "{}: cannot be opened: {}", path.string(), std::strerror(errno));
  const int reason = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (reason != 0 && reason != EINVAL && reason != ENOTSUP)
    fail(ErrorKind::data, "{}: cannot be written: {}", path.string(), std::strerror(reason));
}

void sync_tree(const std::filesystem::path& root) {
  for (const std::filesystem::directory_entry& entry : entries_below(root))
    if (entry.is_regular_file() || entry.is_directory()) sync_path(entry.path());
  sync_path(root);
}

void skip_mark(std::istream& in, const std::filesystem::path& file) {
  const int first = in.peek();
  if (in.eof()) return in.clear();
  if (first < 0xEF) return;  // no mark; a pipe cannot be sought in, so that nothing is read of it
  char bytes[3] = {};
  in.read(bytes, sizeof bytes);
  const std::string_view start(bytes, static_cast<size_t>(in.gcount()));
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF"))
    fail(ErrorKind::data, "{0}: UTF-16, want UTF-8: iconv -f UTF-16 -t UTF-8 {0} > rows.jsonl", file.string());
  in.clear();
  if (start == "\xEF\xBB\xBF") return;
  for (size_t i = 0; i < start.size(); ++i) in.unget();
}

}  // namespace hexad
