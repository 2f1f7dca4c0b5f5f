// Who is at the other end of a connection within this machine.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace hexad::http {

// An end of a TCP connection, in the byte order of this machine.
struct End {
  uint32_t address = 0;
  uint16_t port = 0;
};

// The user whose socket is bound to `from` and connected to `to`, as the kernel lists it in proc/net/tcp and tcp6;
// nothing where it does not.
std::optional<uid_t> user_of(End from, End to, const std::filesystem::path& proc = "/proc");

}  // namespace hexad::http
