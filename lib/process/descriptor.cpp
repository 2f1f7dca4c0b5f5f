#include "lib/process/descriptor.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "lib/base/file/open_file.hpp"

namespace hexad::process {
namespace {

[[noreturn]] void give_up(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& from) noexcept {
  if (this != &from) close(), fd_ = from.release();
  return *this;
}

void Descriptor::close() {
  if (fd_ >= 0) ::close(release());
}

void Descriptor::never_wait() const { ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK); }

std::array<Descriptor, 2> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) give_up("no pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::array<Descriptor, 2> make_sockets(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) give_up("no socket pair");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor null_device() {
  Descriptor device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!device) give_up("cannot open /dev/null");
  return device;
}

Descriptor open_log(const std::string& path, unsigned mode) {
  Descriptor log(open_to_write(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, mode));
  if (!log) give_up("cannot open " + path);
  return log;
}

}  // namespace hexad::process
