// The keys that make a rank's memory fit: values that the plugins of a run name for it (fact memory_keys), and smaller
// micro-batches, each with what it saves by the same formulas as the plan.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/check.hpp"

namespace hexad::plan {

// What is to be smaller: the phase that holds most, or what is held through the whole run by a rank that trains.
enum class Of { worst_phase, held };

struct Saving {
  std::string key;    // "policy.train_micro_batch_size"
  std::string value;  // "2"
  int64_t bytes = 0;

  bool operator==(const Saving&) const = default;
};

// The keys that save most, the best first, `most` at most. A value that the checks of the configuration refuse is left
// out, and so is one that saves nothing. `room` as of memory_plan().
std::vector<Saving> best_savings(const config::Loaded& loaded, std::optional<int64_t> room = {}, size_t most = 3,
                                 Of of = Of::worst_phase);

// "policy.train_micro_batch_size=2 (saves 12.1 GiB), ..."; "" of none.
std::string text_of(const std::vector<Saving>& savings);

}  // namespace hexad::plan
