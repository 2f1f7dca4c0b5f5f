#include "plugins/server_bridge/refit/own_host.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <hexad/services.hpp>

#include <memory>

namespace hexad::bridge {
namespace {

// "http://[::1]:80/v1" is at "::1".
std::string host_of(const std::string& url) {
  const size_t scheme = url.find("://");
  std::string host = scheme == std::string::npos ? url : url.substr(scheme + 3);
  host = host.substr(0, host.find('/'));
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

// An address on which a socket can be bound is one of ours.
bool is_on_this_host(const std::string& url) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_DGRAM;
  if (::getaddrinfo(host_of(url).c_str(), nullptr, &wanted, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one; one = one->ai_next) {
    const int descriptor = ::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool ours = descriptor >= 0 && ::bind(descriptor, one->ai_addr, one->ai_addrlen) == 0;
    if (descriptor >= 0) ::close(descriptor);
    if (ours) return true;
  }
  return false;
}

void check_own_host(const std::string& url) {
  if (is_on_this_host(url)) return;
  sdk::fail(HEXAD_INVALID_ARGUMENT,
            "%s is no address of this host, whose memory it is to map (CUDA IPC): wanted a server on the rank's own "
            "GPU. Set policy.generation.refit_transport to nccl, gloo or disk",
            url.c_str());
}

}  // namespace hexad::bridge
