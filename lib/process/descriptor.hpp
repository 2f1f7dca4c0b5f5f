// A file descriptor that closes itself, and what is made to be given to children. All of them close on exec.
#pragma once
#include <array>
#include <string>
#include <utility>

namespace hexad::process {

// Owns a descriptor, or none (-1).
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int owned) : fd_(owned) {}
  Descriptor(Descriptor&& from) noexcept : fd_(from.release()) {}
  Descriptor& operator=(Descriptor&& from) noexcept;
  ~Descriptor() { close(); }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void close();
  // Reads and writes that would wait fail with EAGAIN instead.
  void never_wait() const;

 private:
  int fd_ = -1;
};

// These throw std::system_error.
std::array<Descriptor, 2> make_pipe();             // the end to read, the end to write
std::array<Descriptor, 2> make_sockets(int type);  // a connected pair of AF_UNIX: SOCK_STREAM, SOCK_SEQPACKET
Descriptor null_device();                          // /dev/null, to read and to write
// To write at its end, never through a link (lib/base/file/open_file.hpp); made with this `mode` where it is not there.
Descriptor open_log(const std::string& path, unsigned mode);

}  // namespace hexad::process
