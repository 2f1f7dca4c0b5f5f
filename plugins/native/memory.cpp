#include "plugins/native/memory.hpp"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "plugins/native/model/kv_cache.hpp"

namespace hexad::native {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
// The rest is for the trainer, which often shares the machine.
constexpr double kShareOfHost = 0.25, kShareOfDevice = 0.5;

double free_host_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  double kib = 0;
  while (file >> key >> kib && std::getline(file, unit)) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 8 * kGib;
}

double free_bytes(at::Device device) {
  if (device.is_cpu()) return free_host_bytes();
  return double(at::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).first);
}

// What native_cfg.kv_cache_gb says, or a share of what is free.
double bytes_to_use(const Settings& settings) {
  const double free = free_bytes(settings.device);
  if (!settings.kv_cache_gib) return (settings.device.is_cpu() ? kShareOfHost : kShareOfDevice) * free;
  if (*settings.kv_cache_gib * kGib > free) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "native_cfg.kv_cache_gb: got %g, this worker's device has %.4g GiB free",
              *settings.kv_cache_gib, free / kGib);
  }
  return *settings.kv_cache_gib * kGib;
}

}  // namespace

int64_t count_blocks(const Settings& settings, const modeling::ModelConfig& config) {
  const double block = double(KvCache::bytes_per_block(config, settings.block_size, settings.cache_dtype()));
  const int64_t longest = (settings.max_length + settings.block_size - 1) / settings.block_size;
  const double bytes = bytes_to_use(settings);
  double blocks = bytes / block;
  if (!settings.kv_cache_gib) blocks = std::min(blocks, double(longest) * double(settings.max_sequences));
  if (blocks < 1) {
    sdk::fail(HEXAD_RESOURCE_EXHAUSTED, "the KV cache gets %.4g GiB, and one block of %lld tokens needs %.4g: raise %s",
              bytes / kGib, static_cast<long long>(settings.block_size), block / kGib, "native_cfg.kv_cache_gb");
  }
  return static_cast<int64_t>(std::min(blocks, double(std::numeric_limits<int32_t>::max())));
}

}  // namespace hexad::native
