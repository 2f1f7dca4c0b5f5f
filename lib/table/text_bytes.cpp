#include "lib/table/text_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "lib/base/error.hpp"
#include "lib/base/file/input_file.hpp"

namespace hexad::table {
namespace {

// Open as long as it lives.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& file, const std::filesystem::path& name)
      : descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) refuse_file(name.string(), "cannot be opened", errno);
    if (!S_ISREG(status.st_mode)) fail(ErrorKind::data, "{}: no regular file, want one of rows", name.string());
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  // -1 with errno where it cannot be read.
  ssize_t read(std::span<char> bytes, int64_t offset) const {
    if (::lseek(descriptor_, offset, SEEK_SET) < 0) return -1;
    ssize_t count = 0;
    do count = ::read(descriptor_, bytes.data(), bytes.size());
    while (count < 0 && errno == EINTR);
    return count;
  }

  struct stat status {};

 private:
  int descriptor_;
};

class FileBytes : public TextBytes {
 public:
  FileBytes(std::filesystem::path file, std::filesystem::path name)
      : file_(std::move(file)), name_(std::move(name)), status_(Descriptor(file_, name_).status) {}
  int64_t size() const override { return status_.st_size; }
  void read(int64_t offset, std::span<char> bytes) const override {
    const Descriptor file(file_, name_);
    if (!is_same(file.status)) refuse_change();
    while (!bytes.empty()) {
      const ssize_t count = file.read(bytes, offset);
      if (count < 0) refuse_file(name_.string(), "cannot be read", errno);
      if (count == 0) refuse_change();
      bytes = bytes.subspan(static_cast<size_t>(count));
      offset += count;
    }
  }

 private:
  bool is_same(const struct stat& now) const {
    return now.st_dev == status_.st_dev && now.st_ino == status_.st_ino && now.st_size == status_.st_size &&
           now.st_mtim.tv_sec == status_.st_mtim.tv_sec && now.st_mtim.tv_nsec == status_.st_mtim.tv_nsec;
  }
  [[noreturn]] void refuse_change() const {
    fail(ErrorKind::data, "{}: it has been written anew since it was opened; data must not change while a run reads it",
         name_.string());
  }

  std::filesystem::path file_, name_;
  struct stat status_;
};

class MemoryBytes : public TextBytes {
 public:
  explicit MemoryBytes(std::string text) : text_(std::move(text)) {}
  int64_t size() const override { return static_cast<int64_t>(text_.size()); }
  void read(int64_t offset, std::span<char> bytes) const override {
    std::copy_n(text_.begin() + offset, bytes.size(), bytes.begin());
  }

 private:
  std::string text_;
};

}  // namespace

std::unique_ptr<TextBytes> bytes_of_file(const std::filesystem::path& file, const std::filesystem::path& name) {
  return std::make_unique<FileBytes>(file, name);
}

std::unique_ptr<TextBytes> bytes_of_text(std::string text) { return std::make_unique<MemoryBytes>(std::move(text)); }

}  // namespace hexad::table
