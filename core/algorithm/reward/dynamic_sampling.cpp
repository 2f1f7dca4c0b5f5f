#include "core/algorithm/reward/dynamic_sampling.hpp"

#include <numeric>

#include "lib/base/error.hpp"

namespace hexad::algorithm {

std::optional<rollout::Rollout> DynamicSampling::add(const rollout::Rollout& generation, std::span<const float> std) {
  if (static_cast<int64_t>(std.size()) != generation.batch.size()) {
    fail(ErrorKind::data, "dynamic sampling: {} standard deviations for {} rows", std.size(), generation.batch.size());
  }
  std::vector<int64_t> rows;
  for (size_t row = 0; row < std.size(); ++row) {
    if (std[row] != 0) rows.push_back(static_cast<int64_t>(row));
  }
  if (generations_++ == 0) {
    kept_ = generation.select(rows);
  } else {
    kept_.append(generation.select(rows));
  }
  if (kept() >= train_rows_) {
    discarded_ = kept() - train_rows_;
    rows.resize(static_cast<size_t>(train_rows_));
    std::iota(rows.begin(), rows.end(), 0);
    kept_ = kept_.select(rows);
    return kept_;
  }
  if (generations_ > max_batches_) {
    fail(ErrorKind::data,
         "dynamic sampling: after {} generations only {} of {} samples belong to groups whose rewards vary "
         "(grpo.dynamic_sampling_max_gen_batches is {}); the task is too easy or too hard, or raise that limit",
         generations_, kept(), train_rows_, max_batches_);
  }
  return std::nullopt;
}

}  // namespace hexad::algorithm
