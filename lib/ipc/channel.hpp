// Frames over a local stream socket, with descriptors beside them and a deadline on every wait.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hexad::ipc {

struct Frame {
  uint32_t kind = 0;  // as its sender says; what kinds there are is the users' affair
  std::string bytes;
  std::vector<int> descriptors;  // the receiver's to close
};

// The other side has closed its end.
class Closed : public std::runtime_error {
 public:
  Closed() : std::runtime_error("the connection is closed") {}
};
// Not within the time.
class TimedOut : public std::runtime_error {
 public:
  TimedOut() : std::runtime_error("the time is over") {}
};

inline constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
int64_t now_ns();  // CLOCK_MONOTONIC

// One end of a connection; owns its socket. One thread sends and one receives at a time.
class Channel {
 public:
  // `takes_descriptors`: whether frames may bring some; those of a peer that is not trusted are dropped by the kernel.
  Channel(int socket, bool takes_descriptors) : socket_(socket), takes_descriptors_(takes_descriptors) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // The descriptors are copied, not taken. Throws Closed or TimedOut.
  void send(uint32_t kind, std::string_view bytes, const std::vector<int>& descriptors, int64_t deadline_ns);
  void send(uint32_t kind, std::string_view bytes, int64_t deadline_ns = kForever) {
    send(kind, bytes, {}, deadline_ns);
  }
  // The next frame; nothing if none has begun to arrive by `begins_by`. Throws Closed, BadPacket if the bytes are no
  // frame, TimedOut if a frame that has begun has not ended by `ends_by`.
  std::optional<Frame> receive(int64_t begins_by = kForever, int64_t ends_by = kForever);

 private:
  bool wait(short events, int64_t deadline_ns) const;
  bool read_more(size_t wanted, int64_t deadline_ns);

  int socket_;
  bool takes_descriptors_;
  std::string buffer_;  // what has arrived beyond the last frame
  std::vector<int> descriptors_;
};

}  // namespace hexad::ipc
