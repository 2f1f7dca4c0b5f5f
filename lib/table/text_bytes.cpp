#include "lib/table/text_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "lib/base/error.hpp"
#include "lib/base/file/input_file.hpp"

namespace hexad::table {
namespace {

// Open as long as it lives.
class Descriptor {
 public:
  // Another constructor has made it when this one throws: it is closed then.
  Descriptor(const std::filesystem::path& file, const std::filesystem::path& name)
      : Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) refuse_file(name.string(), "cannot be opened", errno);
    if (!S_ISREG(status.st_mode)) fail(ErrorKind::data, "{}: no regular file, want one of rows", name.string());
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  // -1 with errno where it cannot be read. One thread at a time.
  ssize_t read(std::span<char> bytes, int64_t offset) const {
    if (::lseek(descriptor_, offset, SEEK_SET) < 0) return -1;
    ssize_t count = 0;
    do count = ::read(descriptor_, bytes.data(), bytes.size());
    while (count < 0 && errno == EINTR);
    return count;
  }

  struct stat status {};

 private:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

[[noreturn]] void refuse_change(const std::filesystem::path& name) {
  fail(ErrorKind::data, "{}: it has been written anew since it was opened; data must not change while a run reads it",
       name.string());
}

void fill(const Descriptor& file, const std::filesystem::path& name, int64_t offset, std::span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = file.read(bytes, offset);
    if (count < 0) refuse_file(name.string(), "cannot be read", errno);
    if (count == 0) refuse_change(name);
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

class FileBytes : public TextBytes {
 public:
  FileBytes(std::filesystem::path file, std::filesystem::path name)
      : file_(std::move(file)), name_(std::move(name)), status_(Descriptor(file_, name_).status) {}
  int64_t size() const override { return status_.st_size; }
  void read(int64_t offset, std::span<char> bytes) const override {
    const Descriptor file(file_, name_);
    if (!is_same(file.status)) refuse_change(name_);
    fill(file, name_, offset, bytes);
  }

 private:
  // Not by device and inode: a mount by FUSE may give a file others each time.
  bool is_same(const struct stat& now) const {
    return now.st_size == status_.st_size && now.st_mtim.tv_sec == status_.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == status_.st_mtim.tv_nsec;
  }

  std::filesystem::path file_, name_;
  struct stat status_;
};

class HeldBytes : public TextBytes {
 public:
  HeldBytes(const std::filesystem::path& file, std::filesystem::path name)
      : name_(std::move(name)), file_(file, name_) {}
  int64_t size() const override { return file_.status.st_size; }
  void read(int64_t offset, std::span<char> bytes) const override {
    const std::lock_guard mine(turn_);
    fill(file_, name_, offset, bytes);
  }

 private:
  std::filesystem::path name_;
  Descriptor file_;
  mutable std::mutex turn_;
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

std::unique_ptr<TextBytes> held_bytes(const std::filesystem::path& file, const std::filesystem::path& name) {
  return std::make_unique<HeldBytes>(file, name);
}

std::unique_ptr<TextBytes> bytes_of_text(std::string text) { return std::make_unique<MemoryBytes>(std::move(text)); }

}  // namespace hexad::table
