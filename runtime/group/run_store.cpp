#include "runtime/group/run_store.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include <c10/util/Exception.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "runtime/error.hpp"

namespace hexad::runtime {
namespace {

using Bytes = std::vector<uint8_t>;
using Keys = std::vector<std::string>;
using std::chrono::milliseconds, std::chrono::steady_clock;

int listen_at(const addrinfo& place, int waiting) {
  const int fd = ::socket(place.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(fd, place.ai_addr, place.ai_addrlen) == 0 && ::listen(fd, waiting) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

int listen_on(const std::string& address, int port, int waiting) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure) throw Error(HEXAD_UNAVAILABLE, fmt::format("cannot resolve {}: {}", address, gai_strerror(failure)));
  int fd = -1, error = 0;
  for (const addrinfo* place = found; place && fd < 0; place = place->ai_next) {
    fd = listen_at(*place, waiting);
    if (fd < 0) error = errno;
  }
  ::freeaddrinfo(found);
  if (fd < 0)
    throw Error(HEXAD_UNAVAILABLE,
                fmt::format("cannot listen on {}, port {}: {}", address, port, std::strerror(error)));
  return fd;
}

struct Listening {
  int fd = -1;
  ~Listening() {
    if (fd >= 0) ::close(fd);
  }
};

// From now on the kernel drops what newcomers send to this listening socket; connections that are there go on. Kernels
// without socket filters (some sandboxes) let them in.
void shut(int listening) {
  sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program = {1, drop_all};
  ::setsockopt(listening, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

// A connection that its clones share. TCPStore answers one call at a time: waits ask again and again, and hold none up.
class RunStore : public c10d::Store {
 public:
  RunStore(c10::intrusive_ptr<c10d::Store> inner, milliseconds timeout) : Store(timeout), inner_(std::move(inner)) {}

  c10::intrusive_ptr<Store> clone() override { return c10::make_intrusive<RunStore>(inner_, timeout_); }

  void set(const std::string& key, const Bytes& value) override { inner_->set(key, value); }
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override {
    return inner_->compareSet(key, expected, desired);
  }
  Bytes get(const std::string& key) override {
    wait({key});
    return inner_->get(key);
  }
  int64_t add(const std::string& key, int64_t value) override { return inner_->add(key, value); }
  bool deleteKey(const std::string& key) override { return inner_->deleteKey(key); }
  bool check(const Keys& keys) override { return inner_->check(keys); }
  int64_t getNumKeys() override { return inner_->getNumKeys(); }

  void append(const std::string& key, const Bytes& value) override { inner_->append(key, value); }
  std::vector<Bytes> multiGet(const Keys& keys) override {
    wait(keys);
    return inner_->multiGet(keys);
  }
  void multiSet(const Keys& keys, const std::vector<Bytes>& values) override { inner_->multiSet(keys, values); }
  bool hasExtendedApi() const override { return inner_->hasExtendedApi(); }

  void wait(const Keys& keys) override { wait(keys, timeout_); }
  void wait(const Keys& keys, const milliseconds& timeout) override {
    constexpr milliseconds kLongestPause{20};
    const milliseconds patience = timeout == kNoTimeout ? timeout_ : timeout;
    const auto deadline = steady_clock::now() + patience;
    for (milliseconds pause{1}; !inner_->check(keys); pause = std::min(2 * pause, kLongestPause)) {
      if (steady_clock::now() >= deadline)
        C10_THROW_ERROR(DistStoreError,
                        fmt::format("wait timeout after {} ms, keys: {}", patience.count(), fmt::join(keys, ", ")));
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  c10::intrusive_ptr<c10d::Store> inner_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> make_run_store(const std::string& address, int port, int rank, int world,
                                               milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.numWorkers = static_cast<size_t>(world);
  options.timeout = timeout;
  Listening listening;
  if (rank == 0) {
    options.isServer = true;
    options.masterListenFd = listen_on(address, port, 64 + world);  // the store's from here on
    listening.fd = ::fcntl(*options.masterListenFd, F_DUPFD_CLOEXEC, 0);
  }
  c10::intrusive_ptr<c10d::Store> inner = c10::make_intrusive<c10d::TCPStore>(address, options);
  if (rank == 0) shut(listening.fd);  // it has waited in there until all have come
  return c10::make_intrusive<RunStore>(std::move(inner), timeout);
}

}  // namespace hexad::runtime
