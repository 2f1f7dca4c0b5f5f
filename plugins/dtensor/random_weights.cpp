#include "plugins/dtensor/random_weights.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <hexad/abi.h>

#include <string_view>

namespace hexad::dtensor {
namespace {

// FNV-1a of the seed's bytes and the name, folded to the 32 bits that the generator uses.
uint64_t generator_seed(int64_t seed, std::string_view name) {
  uint64_t hash = 14695981039346656037ull;
  const auto add = [&](uint64_t byte) { hash = (hash ^ byte) * 1099511628211ull; };
  for (int shift = 0; shift < 64; shift += 8) add(static_cast<uint64_t>(seed) >> shift & 0xff);
  for (const char letter : name) add(static_cast<uint8_t>(letter));
  return (hash ^ hash >> 32) & 0xffffffffull;
}

}  // namespace

bool has_weights(const std::filesystem::path& dir) {
  return std::filesystem::exists(dir / "model.safetensors") ||
         std::filesystem::exists(dir / "model.safetensors.index.json");
}

void randomize_weights(ShardedModel& model, int64_t seed) {
  model.set_weights(HEXAD_WEIGHTS_CURRENT, [&](const ShardedParam& param) {
    const at::Generator generator = at::detail::createCPUGenerator(generator_seed(seed, param.name));
    const at::Tensor whole = modeling::initial_weight(model.config(), {param.name, param.shape, ""}, generator);
    return whole.narrow(0, param.rows.begin, param.rows.size());
  });
}

}  // namespace hexad::dtensor
