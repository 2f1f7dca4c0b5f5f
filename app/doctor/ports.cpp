// Loopback, and the ports where ranks meet.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "app/doctor/topics.hpp"
#include "lib/process/descriptor.hpp"

namespace hexad::doctor {
namespace {

using process::Descriptor;

sockaddr_in at(uint32_t address, int64_t port) {
  sockaddr_in place{};
  place.sin_family = AF_INET, place.sin_port = htons(static_cast<uint16_t>(port));
  place.sin_addr.s_addr = htonl(address);
  return place;
}

// A socket that is bound there; without a descriptor: errno says why not.
Descriptor bound(sockaddr_in place) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket && ::bind(socket.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) != 0) {
    const int why = errno;
    socket.close();
    errno = why;
  }
  return socket;
}

// Why this process reaches nothing of its own by 127.0.0.1; empty if it does.
std::string why_no_loopback() {
  const Descriptor listening = bound(at(INADDR_LOOPBACK, 0)), calling(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  socklen_t size = sizeof place;
  const timeval patience = {.tv_sec = 2, .tv_usec = 0};  // a firewall may swallow it
  const bool well = listening && calling && ::listen(listening.get(), 1) == 0 &&
                    ::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&place), &size) == 0 &&
                    ::setsockopt(calling.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
                    ::connect(calling.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) == 0;
  return well ? "" : std::strerror(errno);
}

}  // namespace

Findings ports(int64_t low, int64_t high) {
  Findings found;
  if (const std::string why = why_no_loopback(); !why.empty())
    found.push_back({Level::problem, "ports",
                     fmt::format("loopback does not serve: {}; the ranks of a host meet there", why),
                     "ip link set lo up; let a firewall or a sandbox pass 127.0.0.1"});
  int64_t free = 0;
  for (int64_t port = low; port < high; ++port)
    if (bound(at(INADDR_ANY, port))) ++free;  // as a run binds it
  const std::string what = fmt::format("{} of {} ports in [{}, {}) are free", free, high - low, low, high);
  if (free == 0)
    found.push_back({Level::problem, "ports", what + ", and the ranks of a run meet at one of them",
                     "set cluster.master_port_range_low and cluster.master_port_range_high to others"});
  else
    found.push_back({Level::ok, "ports", found.empty() ? "loopback serves; " + what : what});
  return found;
}

}  // namespace hexad::doctor
