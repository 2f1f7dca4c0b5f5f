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

double bytes_to_use(at::Device device) {
  if (device.is_cpu()) return kShareOfHost * free_host_bytes();
  return kShareOfDevice * double(at::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).first);
}

}  // namespace

int64_t count_blocks(const Settings& settings, const modeling::ModelConfig& config) {
  const double block = double(KvCache::bytes_per_block(config, settings.block_size, settings.dtype));
  const int64_t longest = (settings.max_length + settings.block_size - 1) / settings.block_size;
  const double bytes = settings.kv_cache_gib ? *settings.kv_cache_gib * kGib : bytes_to_use(settings.device);
  double blocks = bytes / block;
  if (!settings.kv_cache_gib) blocks = std::min(blocks, double(longest) * double(settings.max_sequences));
  if (blocks < 1) {
    sdk::fail(HEXAD_RESOURCE_EXHAUSTED, "the KV cache gets %.4g GiB, and one block of %lld tokens needs %.4g: raise %s",
              bytes / kGib, static_cast<long long>(settings.block_size), block / kGib, "native_cfg.kv_cache_gb");
  }
  return static_cast<int64_t>(std::min(blocks, double(std::numeric_limits<int32_t>::max())));
}

}  // namespace hexad::native
