#include "runtime/session.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/group/process_group.hpp"
#include "runtime/group/run_store.hpp"

namespace hexad::runtime {
namespace {

std::unique_ptr<Session> running;

[[noreturn]] void invalid(const std::string& text) { throw Error(HEXAD_INVALID_ARGUMENT, text); }

void check_options(const hexad_runtime_options& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size)
    invalid(fmt::format("rank {} does not lie in a world of {}", options.rank, options.world_size));
  if (options.device_type != kDLCPU && options.device_type != kDLCUDA)
    invalid(fmt::format("device type {} is neither kDLCPU nor kDLCUDA", options.device_type));
  if (options.timeout_ms <= 0) invalid(fmt::format("timeout_ms is {}, wanted a positive number", options.timeout_ms));
  if (options.block_first < 0 || options.block_size < 1 || options.rank < options.block_first ||
      options.rank - options.block_first >= options.block_size ||
      options.block_first + options.block_size > options.world_size)
    invalid(fmt::format("rank {} does not lie in a block of {} ranks from {} of a world of {}", options.rank,
                        options.block_size, options.block_first, options.world_size));
  if (options.world_size == 1) return;
  if (!options.master_address || !*options.master_address) invalid("master_address is empty");
  if (options.master_port < 1 || options.master_port > 65535)
    invalid(fmt::format("master_port is {}, wanted 1 to 65535", options.master_port));
}

// Asks the kernel which source address it would use: a UDP connect sends nothing.
std::string address_towards(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure) throw Error(HEXAD_UNAVAILABLE, fmt::format("cannot resolve {}: {}", host, gai_strerror(failure)));
  std::string address;
  for (addrinfo* info = found; info && address.empty(); info = info->ai_next) {
    const int fd = socket(info->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    sockaddr_storage local{};
    socklen_t size = sizeof(local);
    char text[NI_MAXHOST];
    if (!connect(fd, info->ai_addr, info->ai_addrlen) && !getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) &&
        !getnameinfo(reinterpret_cast<sockaddr*>(&local), size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST))
      address = text;
    close(fd);
  }
  freeaddrinfo(found);
  if (address.empty()) throw Error(HEXAD_UNAVAILABLE, fmt::format("no route to {}", host));
  return address;
}

// "world", or "world@2" of a block that begins at rank 2.
std::string block_name(const hexad_runtime_options& options) {
  return options.block_first == 0 ? "world" : fmt::format("world@{}", options.block_first);
}

c10::intrusive_ptr<c10d::Store> make_store(const Session& session) {
  const hexad_runtime_options& options = session.options;
  if (options.world_size == 1) return c10::make_intrusive<c10d::HashStore>();
  return make_run_store(session.master_address, options.master_port, options.rank, options.world_size,
                        session.timeout());
}

std::string stored_key(const char* key) { return std::string("kv/") + key; }

// With a deadline of the caller's own, and an error that says what was wanted.
void wait_for(c10d::Store& store, const std::string& key, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::chrono::milliseconds pause(1);
  while (!store.check({key})) {
    if (std::chrono::steady_clock::now() >= deadline)
      throw Error(HEXAD_DEADLINE_EXCEEDED, fmt::format("nobody put the key within {} ms", timeout.count()));
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(20));
  }
}

}  // namespace

at::Device Session::device() const {
  return options.device_type == kDLCUDA ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(options.device_id))
                                        : at::Device(at::kCPU);
}

Session& session() {
  if (!running) throw Error(HEXAD_FAILED_PRECONDITION, "the runtime was not started");
  return *running;
}

hexad_code start(const hexad_runtime_options* options) {
  const auto what = [&] {
    return fmt::format("runtime start, rank {} of {} at {}:{}", options->rank, options->world_size,
                       options->master_address ? options->master_address : "-", options->master_port);
  };
  return guarded(what, [&] {
    if (running) throw Error(HEXAD_FAILED_PRECONDITION, "already started");
    auto made = std::make_unique<Session>();
    made->options = *options;
    if (made->options.block_size == 0) made->options.block_size = options->world_size;
    check_options(made->options);
    if (options->master_address) made->master_address = options->master_address;
    made->options.master_address = made->master_address.c_str();
    if (options->threads > 0) at::set_num_threads(options->threads);
    if (options->deterministic) at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    if (options->device_type == kDLCUDA) cuda::use_device(options->device_id);
    made->store = make_store(*made);
    if (options->world_size > 1) {
      made->waits = std::make_unique<Waits>(made->store, options->rank, options->world_size);
      made->local_address = address_towards(made->master_address, options->master_port);
      std::vector<int32_t> block(static_cast<size_t>(made->options.block_size));
      std::iota(block.begin(), block.end(), made->options.block_first);
      if (block.size() > 1) made->comms.push_back(make_comm(*made, block, block_name(made->options)));
    }
    running = std::move(made);
  });
}

void stop() {
  if (!running) return;
  while (!running->comms.empty()) {
    end_comm(*running->comms.back());
    running->comms.pop_back();
  }
  running.reset();
}

hexad_code kv_put(const char* key, const void* value, uint64_t size) {
  return guarded([&] { return fmt::format("kv_put \"{}\"", key); },
                 [&] {
                   const auto* bytes = static_cast<const uint8_t*>(value);
                   session().store->set(stored_key(key), std::vector<uint8_t>(bytes, bytes + size));
                 });
}

hexad_code kv_get(const char* key, int64_t timeout_ms, const void** value, uint64_t* size) {
  return guarded([&] { return fmt::format("kv_get \"{}\"", key); },
                 [&] {
                   thread_local std::vector<uint8_t> kept;
                   Session& current = session();
                   const std::string name = stored_key(key);
                   wait_for(*current.store, name,
                            timeout_ms < 0 ? current.timeout() : std::chrono::milliseconds(timeout_ms));
                   kept = current.store->get(name);
                   *value = kept.data();
                   *size = kept.size();
                 });
}

}  // namespace hexad::runtime
