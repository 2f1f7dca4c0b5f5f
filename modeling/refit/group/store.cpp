#include "modeling/refit/group/store.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include <hexad/services.hpp>

#include <cerrno>
#include <cstring>
#include <vector>

#include "modeling/refit/group/tcp.hpp"

namespace hexad::refit {
namespace {

int listen_on(const std::string& address, const std::string& key) {
  const auto refuse = [&](int descriptor) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "weight update: cannot listen on %s: %s. %s wants an IPv4 address of this host that the servers reach",
              address.c_str(), std::strerror(error), key.c_str());
  };
  sockaddr_in name{};
  name.sin_family = AF_INET;
  errno = EINVAL;
  if (::inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1) refuse(-1);
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0 || ::bind(descriptor, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
      ::listen(descriptor, 128) != 0)
    refuse(descriptor);
  return descriptor;
}

int port_of(int descriptor) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.sin_port);
}

c10::intrusive_ptr<c10d::TCPStore> open(const std::string& address, const c10d::TCPStoreOptions& options) {
  try {
    return c10::make_intrusive<c10d::TCPStore>(address, options);
  } catch (const std::exception& error) {
    sdk::fail(HEXAD_UNAVAILABLE, "weight update: the store at %s:%d did not begin: %s", address.c_str(), options.port,
              error.what());
  }
}

}  // namespace

Store::Store(const std::string& address, const std::string& key) : tcp_(std::make_unique<Tcp>()) {
  const int descriptor = listen_on(address, key);  // the store's from here on
  port_ = port_of(descriptor);
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port_);
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = descriptor;
  options.useLibUV = false;
  tcp_->store = open(address, options);
}

Store::Store(const std::string& address, int port, int patience_ms) : tcp_(std::make_unique<Tcp>()), port_(port) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(patience_ms);
  tcp_->store = open(address, options);
}

Store::~Store() = default;

void Store::set(const std::string& name, std::string_view value) {
  try {
    tcp_->store->set(name, std::vector<uint8_t>(value.begin(), value.end()));
  } catch (const std::exception& error) {
    sdk::fail(HEXAD_UNAVAILABLE, "weight update: the store at port %d lost a value: %s", port_, error.what());
  }
}

std::string Store::get(const std::string& name) {
  try {
    const std::vector<uint8_t> value = tcp_->store->get(name);
    return {value.begin(), value.end()};
  } catch (const std::exception& error) {
    sdk::fail(HEXAD_UNAVAILABLE, "weight update: the store at port %d has no value %s: %s", port_, name.c_str(),
              error.what());
  }
}

}  // namespace hexad::refit
