// Sequence packing: which sequences share a row of at most `capacity` tokens. The four algorithms of NeMo-RL, with its
// order of bins and of sequences inside a bin (which decides what rank and what micro-batch a sample lands in).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace hexad::data {

enum class PackingAlgorithm : uint8_t {
  concatenative,                  // in order, a new bin when the next sequence does not fit
  first_fit_decreasing,           // longest first (of equals the later), into the first bin with room
  first_fit_shuffle,              // random order, into the first bin with room
  modified_first_fit_decreasing,  // Johnson & Garey 1985, with a worst-fit last phase
};
// Not case-sensitive. Throws Error(config) that lists the names.
PackingAlgorithm packing_algorithm_named(std::string_view name);

// A bin lists indices of sequences.
using Bins = std::vector<std::vector<int64_t>>;

struct PackingLimits {
  std::optional<int64_t> min_bin_count = {};       // >= 0
  std::optional<int64_t> bin_count_multiple = {};  // >= 1
};

// Throws Error(data) for a sequence longer than `capacity`, for length 0 under modified first-fit decreasing, and when
// there are fewer sequences than bins asked for; Error(config) for limits out of range. `shuffle_seed` is read by
// first_fit_shuffle only.
Bins pack(PackingAlgorithm algorithm, std::span<const int64_t> lengths, int64_t capacity,
          const PackingLimits& limits = {}, uint64_t shuffle_seed = 0);

// The steps of pack().
Bins pack_concatenative(std::span<const int64_t> lengths, int64_t capacity);
// Places the sequences in the given order, each into the first bin with room.
Bins pack_first_fit(std::span<const int64_t> lengths, std::span<const int64_t> order, int64_t capacity);
Bins pack_modified_first_fit_decreasing(std::span<const int64_t> lengths, int64_t capacity);
// Adds bins up to the limits. Bins are ranked once by number of sequences (of equals the later first); each new bin
// takes the last sequence of the first ranked bin that still has two.
Bins adjust_bin_count(Bins bins, const PackingLimits& limits);

}  // namespace hexad::data
