// A file that is read as a stream, line by line or in parts. A read that fails is not its end: it throws, whatever
// reads (std::getline, read, iterators, a parser), where a std::ifstream ends as if the file did. Every reader of a
// file goes through here, through read_file (file.hpp), or maps it (lib/tensorfile).
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <istream>
#include <memory>
#include <streambuf>
#include <string>

namespace hexad {

// Throws what its caller's errors are. `what`: "cannot be opened", "cannot be read"; `reason`: of errno.
using RefuseFile = void (*)(const std::string& file, const char* what, int reason);
// Error(data).
[[noreturn]] void refuse_file(const std::string& file, const char* what, int reason);

// The bytes of an open descriptor, which it owns.
class FileBuffer : public std::streambuf {
 public:
  FileBuffer(std::string file, int descriptor, RefuseFile refuse)
      : file_(std::move(file)), descriptor_(descriptor), refuse_(refuse) {}
  ~FileBuffer() override { ::close(descriptor_); }
  FileBuffer(const FileBuffer&) = delete;
  FileBuffer& operator=(const FileBuffer&) = delete;

 protected:
  int_type underflow() override {
    if (!bytes_) bytes_ = std::make_unique_for_overwrite<char[]>(kBytes);
    const std::streamsize count = read_some(bytes_.get(), kBytes);
    setg(bytes_.get(), bytes_.get(), bytes_.get() + count);
    return count > 0 ? traits_type::to_int_type(bytes_[0]) : traits_type::eof();
  }
  // What is wanted beyond the buffer goes where it is wanted, and not through the buffer.
  std::streamsize xsgetn(char* to, std::streamsize wanted) override {
    const std::streamsize buffered = std::min<std::streamsize>(wanted, egptr() - gptr());
    std::copy_n(gptr(), buffered, to);
    gbump(static_cast<int>(buffered));
    std::streamsize got = buffered;
    for (std::streamsize count = 1; got < wanted && count > 0; got += count)
      count = read_some(to + got, static_cast<size_t>(wanted - got));
    return got;
  }
  // -1 for a pipe.
  pos_type seekoff(off_type offset, std::ios_base::seekdir from, std::ios_base::openmode) override {
    if (from == std::ios_base::cur) offset -= egptr() - gptr();  // the descriptor is ahead by what is buffered
    const int whence = from == std::ios_base::beg ? SEEK_SET : from == std::ios_base::cur ? SEEK_CUR : SEEK_END;
    setg(nullptr, nullptr, nullptr);
    return ::lseek(descriptor_, offset, whence);
  }
  pos_type seekpos(pos_type place, std::ios_base::openmode mode) override {
    return seekoff(off_type(place), std::ios_base::beg, mode);
  }

 private:
  // 0: the end.
  std::streamsize read_some(char* to, size_t most) const {
    ssize_t count = 0;
    do count = ::read(descriptor_, to, most);
    while (count < 0 && errno == EINTR);
    if (count < 0) refuse_(file_, "cannot be read", errno);
    return std::max<ssize_t>(count, 0);
  }

  static constexpr size_t kBytes = 1 << 16;
  std::string file_;
  int descriptor_;
  RefuseFile refuse_;
  std::unique_ptr<char[]> bytes_;
};

class InputFile : public std::istream {
 public:
  // Throws by `refuse` where it cannot be opened.
  explicit InputFile(const std::filesystem::path& file, RefuseFile refuse = refuse_file)
      : InputFile(file, ::open(file.c_str(), O_RDONLY | O_CLOEXEC), refuse) {}
  // One that is open, which it closes; -1: errno says why it is not.
  InputFile(const std::filesystem::path& file, int descriptor, RefuseFile refuse = refuse_file)
      : std::istream(nullptr), buffer_(file.string(), descriptor, refuse) {
    if (descriptor < 0) refuse(file.string(), "cannot be opened", errno);
    rdbuf(&buffer_);
    exceptions(std::ios::badbit);  // what the buffer throws passes through the stream's functions
  }

 private:
  FileBuffer buffer_;
};

}  // namespace hexad
