#include "lib/ipc/channel.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "lib/ipc/packet.hpp"

namespace hexad::ipc {
namespace {

constexpr uint32_t kFrameMagic = 0x31584548;  // "HEX1"
constexpr uint64_t kMaxFrame = uint64_t{4} << 30;
constexpr size_t kMostDescriptors = 4;
constexpr size_t kReadAtOnce = 256 * 1024;

struct FrameHeader {
  uint32_t magic;
  uint32_t kind;
  uint64_t size;
};

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Channel::~Channel() {
  for (const int descriptor : descriptors_) ::close(descriptor);
  ::close(socket_);
}

// False when the time is over.
bool Channel::wait(short events, int64_t deadline_ns) const {
  while (true) {
    int timeout_ms = -1;
    if (deadline_ns != kForever) {
      const int64_t left = std::max<int64_t>(deadline_ns - now_ns(), 0);
      timeout_ms = static_cast<int>(std::min<int64_t>((left + 999'999) / 1'000'000, 1'000'000));
    }
    pollfd waited{socket_, events, 0};
    const int ready = ::poll(&waited, 1, timeout_ms);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw Closed();
    if (deadline_ns != kForever && now_ns() >= deadline_ns) return false;
  }
}

void Channel::send(uint32_t kind, std::string_view bytes, const std::vector<int>& descriptors, int64_t deadline_ns) {
  FrameHeader header{kFrameMagic, kind, bytes.size()};
  iovec parts[2] = {{&header, sizeof header}, {const_cast<char*>(bytes.data()), bytes.size()}};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* entry = CMSG_FIRSTHDR(&message);
    *entry = {CMSG_LEN(descriptors.size() * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(entry), descriptors.data(), descriptors.size() * sizeof(int));
  }
  while (parts[0].iov_len + parts[1].iov_len > 0) {
    const ssize_t sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (!would_block()) throw Closed();
      if (!wait(POLLOUT, deadline_ns)) throw TimedOut();
      continue;
    }
    message.msg_control = nullptr;  // descriptors travel with the first byte
    message.msg_controllen = 0;
    auto left = static_cast<size_t>(sent);
    for (iovec& part : parts) {
      const size_t gone = std::min(left, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + gone;
      part.iov_len -= gone;
      left -= gone;
    }
  }
}

// Appends to the buffer until it holds `wanted` bytes; false when the time is over.
bool Channel::read_more(size_t wanted, int64_t deadline_ns) {
  while (buffer_.size() < wanted) {
    const size_t before = buffer_.size();
    buffer_.resize(before + std::clamp<size_t>(wanted - before, 4096, kReadAtOnce));
    iovec part{buffer_.data() + before, buffer_.size() - before};
    alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (takes_descriptors_) message.msg_control = control, message.msg_controllen = sizeof control;
    const ssize_t count = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const bool again = count < 0 && would_block();
    buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (again) {
      if (!wait(POLLIN, deadline_ns)) return false;
      continue;
    }
    if (count <= 0) throw Closed();
    for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry; entry = CMSG_NXTHDR(&message, entry)) {
      if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
      const size_t had = descriptors_.size(), more = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      descriptors_.resize(had + more);
      std::memcpy(descriptors_.data() + had, CMSG_DATA(entry), more * sizeof(int));
    }
  }
  return true;
}

std::optional<Frame> Channel::receive(int64_t begins_by, int64_t ends_by) {
  if (buffer_.empty() && !read_more(1, begins_by)) return std::nullopt;
  FrameHeader header{};
  if (!read_more(sizeof header, ends_by)) throw TimedOut();
  std::memcpy(&header, buffer_.data(), sizeof header);
  if (header.magic != kFrameMagic || header.size > kMaxFrame) throw BadPacket("bytes that are no frame");
  if (!read_more(sizeof header + header.size, ends_by)) throw TimedOut();
  Frame frame{header.kind, buffer_.substr(sizeof header, header.size), std::exchange(descriptors_, {})};
  buffer_.erase(0, sizeof header + header.size);
  return frame;
}

}  // namespace hexad::ipc
