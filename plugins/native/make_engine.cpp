#include "plugins/native/make_engine.hpp"

#include <c10/core/CachingDeviceAllocator.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "lib/weights/headers.hpp"

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

// The cache has keys and values of one width.
void require_one_width(const modeling::ModelConfig& model, const std::string& dir) {
  if (!model.mla) return;
  sdk::fail(HEXAD_UNIMPLEMENTED,
            "%s: model_type '%s' has multi-head latent attention, which the native generator cannot run yet; wanted "
            "another model, or another generator (policy.generation.backend)",
            dir.c_str(), model.family.c_str());
}

ExecutorOptions executor_options(const Settings& settings, const Replica& replica) {
  return {.dtype = settings.dtype,
          .device = settings.device,
          .deterministic = settings.deterministic,
          .max_length = settings.max_length,
          .block_size = settings.block_size,
          .max_sequences = settings.max_sequences,
          .max_tokens = settings.max_tokens,
          .fp8 = settings.fp8,
          .fp8_cache = settings.fp8_cache,
          .batch_invariant = settings.batch_invariant,
          .replica = replica};
}

SchedulerOptions scheduler_options(const Settings& settings, int64_t blocks) {
  return {.block_size = settings.block_size,
          .num_blocks = blocks,
          .max_sequences = settings.max_sequences,
          .max_tokens = settings.max_tokens,
          .chunked_prefill = settings.chunked_prefill,
          .share_prompts = settings.share_prompts};
}

}  // namespace

modeling::ModelConfig load_model(Settings& settings) {
  modeling::ModelConfig model = modeling::load_model_config(settings.model_name);
  require_one_width(model, settings.model_name);
  if (settings.max_length == 0) settings.max_length = model.max_position_embeddings;
  return model;
}

std::unique_ptr<Engine> make_engine(const sdk::Call& call, const Settings& settings, const modeling::ModelConfig& model,
                                    const Replica& replica) {
  const modeling::ModelConfig local = local_config(model, replica.shard());
  int64_t blocks = count_blocks(settings, local);
  if (!replica.alone()) blocks = replica.smallest(blocks);
  std::unique_ptr<Executor> executor = make_executor(model, executor_options(settings, replica));
  const bool loads = !settings.weights_follow && weights::are_in(settings.model_name);
  if (loads) {
    executor->set_weights(
        load_weights(settings.model_name, model, settings.dtype, settings.device, executor->places(), replica.shard()));
  }
  KvCache cache(local, settings.block_size, blocks, settings.cache_dtype(), settings.device, settings.keep_routes,
                executor->key_layout());
  auto engine = std::make_unique<Engine>(EngineOptions{.schedule = scheduler_options(settings, blocks),
                                                       .max_length = settings.max_length,
                                                       .eos = model.eos_token_ids,
                                                       .replica = replica.alone() ? std::string() : replica.name()},
                                         std::move(executor), std::move(cache), loads);
  if (blocks * settings.block_size < settings.max_length) {
    call.log(HEXAD_LOG_WARN,
             fmt::format("the KV cache holds {} tokens, less than one sequence of max_total_sequence_length {}",
                         blocks * settings.block_size, settings.max_length));
  }
  return engine;
}

}  // namespace hexad::native
