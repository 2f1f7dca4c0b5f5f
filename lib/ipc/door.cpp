#include "lib/ipc/door.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/base/error.hpp"

namespace hexad::ipc {

Door::Door(const std::string& address, int waiting)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  int error = socket_ < 0 ? errno : 0;
  if (!error && ::inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1) error = EINVAL;
  if (!error &&
      (::bind(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 || ::listen(socket_, waiting) != 0))
    error = errno;
  if (!error) return;
  if (socket_ >= 0) ::close(socket_);
  fail(ErrorKind::worker, "cannot listen on {}: {}", address, std::strerror(error));
}

Door::~Door() { ::close(socket_); }

int Door::port() const {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.sin_port);
}

int Door::duplicate() const {
  const int copy = ::fcntl(socket_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) fail(ErrorKind::worker, "cannot listen at port {}: {}", port(), std::strerror(errno));
  return copy;
}

void Door::shut() {
  sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program = {1, drop_all};
  is_shut_ = ::setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

void Door::mind(int64_t count, int64_t most) {
  const bool shall_be_shut = count >= (is_shut_ ? (most + 1) / 2 : most);
  if (shall_be_shut != is_shut_) shall_be_shut ? shut() : open();
}

void Door::open() {
  const int ignored = 0;
  ::setsockopt(socket_, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored);
  is_shut_ = false;
}

}  // namespace hexad::ipc
