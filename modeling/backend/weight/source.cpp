#include "modeling/backend/weight/source.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <string_view>

#include "lib/weights/headers.hpp"
#include "modeling/error.hpp"
#include "modeling/parallel/tensor/gather.hpp"
#include "modeling/weight/finite.hpp"

namespace hexad::modeling {
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

at::Tensor random_weight(const ModelConfig& config, const WeightInfo& info, int64_t seed) {
  return initial_weight(config, info, at::detail::createCPUGenerator(generator_seed(seed, info.hf_name)));
}

at::Tensor read_slice(const SafetensorsReader& reader, const std::string& name, const WeightSlice& slice) {
  at::Tensor part = reader.rows(name, slice.offsets[0], slice.offsets[0] + slice.shape[0]);
  for (size_t d = 1; d < slice.shape.size(); ++d)
    part = part.narrow(static_cast<int64_t>(d), slice.offsets[d], slice.shape[d]);
  require_finite(part, name, reader.entries().at(name).file);
  return part;
}

StoredWeights::StoredWeights(const std::filesystem::path& dir, const ModelConfig& config,
                             const std::vector<WeightInfo>& table, int64_t seed)
    : config_(config),
      reader_(open_weights(dir, config, table, &warnings_)),
      seed_(seed),
      makes_head_(config.reward_head && !reader_.contains(kScoreName)) {
  if (makes_head_)
    warnings_.push_back(fmt::format("{}: no {}, so the reward head starts random (policy.random_init_seed {})",
                                    dir.string(), kScoreName, seed));
}

at::Tensor StoredWeights::read(const WeightInfo& info, const WeightSlice& slice) const {
  if (makes_head_ && info.hf_name == kScoreName) return box_of(random_weight(config_, info, seed_), slice);
  return read_slice(reader_, info.hf_name, slice);
}

void load_or_make_weights(const sdk::Call& call, const ModelSettings& settings,
                          const std::function<void(const std::filesystem::path&)>& load,
                          const std::function<void(int64_t)>& make) {
  const std::filesystem::path& dir = settings.model_dir;
  const std::optional<int64_t> seed = settings.random_init_seed;
  const bool stored = weights::are_in(dir);
  if (!stored && !seed) fail("policy.model_name {}", weights::absent(dir));
  if (!stored) {
    make(*seed);
    call.log(HEXAD_LOG_INFO,
             fmt::format("{}: no weights, so they start random (policy.random_init_seed {})", dir.string(), *seed));
    return;
  }
  if (seed)
    call.log(HEXAD_LOG_INFO, fmt::format("{}: has weights, so policy.random_init_seed is not used", dir.string()));
  load(dir);
}

}  // namespace hexad::modeling
