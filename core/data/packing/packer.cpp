#include "core/data/packing/packer.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

#include "lib/base/random.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::data {
namespace {

const std::vector<std::string> kNames = {"concatenative", "first_fit_decreasing", "first_fit_shuffle",
                                         "modified_first_fit_decreasing"};

void check_fits(std::span<const int64_t> lengths, int64_t capacity) {
  for (int64_t length : lengths) {
    if (length > capacity) {
      fail(ErrorKind::data,
           "sequence packing: a sequence of {} tokens (padded) exceeds the bin capacity of {}; raise the micro-batch "
           "token budget (train_mb_tokens, logprob_mb_tokens) or lower the sequence length",
           length, capacity);
    }
  }
}

std::vector<int64_t> longest_first(std::span<const int64_t> lengths) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.rbegin(), order.rend(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return lengths[a] > lengths[b]; });
  return order;
}

void check_limits(const PackingLimits& limits) {
  if (limits.min_bin_count && *limits.min_bin_count < 0) {
    fail(ErrorKind::config, "sequence packing: min_bin_count must not be negative, got {}", *limits.min_bin_count);
  }
  if (limits.bin_count_multiple && *limits.bin_count_multiple < 1) {
    fail(ErrorKind::config, "sequence packing: bin_count_multiple must be positive, got {}",
         *limits.bin_count_multiple);
  }
}

}  // namespace

PackingAlgorithm packing_algorithm_named(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "modified_ffd") lower = "modified_first_fit_decreasing";  // of recipes of NeMo-RL
  const auto found = std::find(kNames.begin(), kNames.end(), lower);
  if (found != kNames.end()) return static_cast<PackingAlgorithm>(found - kNames.begin());
  fail(ErrorKind::config, "unknown packing algorithm '{}'{}; known: {}", name, did_you_mean(lower, kNames),
       joined(kNames));
}

Bins pack(PackingAlgorithm algorithm, std::span<const int64_t> lengths, int64_t capacity, const PackingLimits& limits,
          uint64_t shuffle_seed) {
  check_limits(limits);
  Bins bins;
  switch (algorithm) {
    case PackingAlgorithm::concatenative: bins = pack_concatenative(lengths, capacity); break;
    case PackingAlgorithm::first_fit_decreasing:
      bins = pack_first_fit(lengths, longest_first(lengths), capacity);
      break;
    case PackingAlgorithm::first_fit_shuffle:
      bins =
          pack_first_fit(lengths, random_permutation(static_cast<int64_t>(lengths.size()), shuffle_seed, 0), capacity);
      break;
    case PackingAlgorithm::modified_first_fit_decreasing:
      bins = pack_modified_first_fit_decreasing(lengths, capacity);
      break;
  }
  return adjust_bin_count(std::move(bins), limits);
}

Bins pack_concatenative(std::span<const int64_t> lengths, int64_t capacity) {
  check_fits(lengths, capacity);
  Bins bins;
  int64_t filled = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (bins.empty() || filled + lengths[i] > capacity) {
      bins.emplace_back();
      filled = 0;
    }
    bins.back().push_back(static_cast<int64_t>(i));
    filled += lengths[i];
  }
  return bins;
}

Bins pack_first_fit(std::span<const int64_t> lengths, std::span<const int64_t> order, int64_t capacity) {
  check_fits(lengths, capacity);
  Bins bins;
  std::vector<int64_t> room;
  for (int64_t sequence : order) {
    const int64_t length = lengths[sequence];
    const auto bin = std::find_if(room.begin(), room.end(), [&](int64_t left) { return left >= length; });
    const size_t index = bin - room.begin();
    if (bin == room.end()) {
      bins.emplace_back();
      room.push_back(capacity);
    }
    bins[index].push_back(sequence);
    room[index] -= length;
  }
  return bins;
}

Bins adjust_bin_count(Bins bins, const PackingLimits& limits) {
  check_limits(limits);
  const int64_t count = static_cast<int64_t>(bins.size());
  int64_t target = std::max(count, limits.min_bin_count.value_or(0));
  const int64_t multiple = limits.bin_count_multiple.value_or(1);
  target = (target + multiple - 1) / multiple * multiple;
  if (target == count) return bins;
  int64_t sequences = 0;
  for (const auto& bin : bins) sequences += static_cast<int64_t>(bin.size());
  if (sequences < target) {
    fail(ErrorKind::data,
         "sequence packing: cannot make {} bins of {} sequences, every bin needs one; use fewer data-parallel ranks or "
         "a larger batch",
         target, sequences);
  }
  std::vector<int64_t> ranked(count);
  std::iota(ranked.rbegin(), ranked.rend(), 0);
  std::stable_sort(ranked.begin(), ranked.end(), [&](int64_t a, int64_t b) { return bins[a].size() > bins[b].size(); });
  auto source = ranked.begin();
  while (static_cast<int64_t>(bins.size()) < target) {
    while (bins[*source].size() < 2) ++source;  // ends: there are at least as many sequences as bins
    const int64_t moved = bins[*source].back();
    bins[*source].pop_back();
    bins.push_back({moved});
  }
  return bins;
}

}  // namespace hexad::data
