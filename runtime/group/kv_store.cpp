#include "runtime/group/kv_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "runtime/error.hpp"

namespace hexad::runtime {
namespace {

std::string stored_key(const char* key) { return std::string("kv/") + key; }

// Polls instead of waiting in the store: a TCPStore client serves one blocking call at a time, and process groups need
// it too.
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
