#include "plugins/vllm_bridge/refit/nccl/rendezvous.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "plugins/vllm_bridge/refit/pickle.hpp"

namespace hexad::vllm {
namespace {

constexpr const char* kKey = "broadcast_from/0/0";  // the first object that rank 0 sends

int listen_on(const std::string& address) {
  const auto refuse = [&](int descriptor) {
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "weight update by NCCL: cannot listen on %s: %s. policy.generation.vllm_cfg.refit_address wants an IPv4 "
              "address of this host that the servers reach",
              address.c_str(), std::strerror(error));
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

}  // namespace

struct Rendezvous::Store {
  c10::intrusive_ptr<c10d::TCPStore> tcp;
};

Rendezvous::Rendezvous(const std::string& address, const UniqueId& id) : store_(std::make_unique<Store>()) {
  const int descriptor = listen_on(address);  // the store's from here on
  port_ = port_of(descriptor);
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port_);
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = descriptor;
  options.useLibUV = false;
  try {
    store_->tcp = c10::make_intrusive<c10d::TCPStore>(address, options);
    const std::string value = unique_id_pickle(id);
    store_->tcp->set(kKey, std::vector<uint8_t>(value.begin(), value.end()));
  } catch (const std::exception& error) {
    sdk::fail(HEXAD_UNAVAILABLE, "weight update by NCCL: the store for vLLM's workers did not begin: %s", error.what());
  }
}

Rendezvous::~Rendezvous() = default;

}  // namespace hexad::vllm
