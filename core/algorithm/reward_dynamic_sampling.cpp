#include "core/algorithm/reward_dynamic_sampling.hpp"

#include <array>

#include "core/base/error.hpp"

namespace hexad::algorithm {

std::optional<data::Batch> DynamicSampling::add(const data::Batch& generation, std::span<const float> std) {
  if (static_cast<int64_t>(std.size()) != generation.size()) {
    fail(ErrorKind::data, "dynamic sampling: {} standard deviations for {} rows", std.size(), generation.size());
  }
  std::vector<int64_t> rows;
  for (size_t row = 0; row < std.size(); ++row) {
    if (std[row] != 0) rows.push_back(static_cast<int64_t>(row));
  }
  const std::array<data::Batch, 2> parts = {kept_, generation.select(rows)};
  kept_ = generations_ == 0 ? parts[1] : data::Batch::concat(parts);
  ++generations_;
  if (kept_.size() >= train_rows_) {
    discarded_ = kept_.size() - train_rows_;
    kept_ = kept_.slice(0, train_rows_);
    return kept_;
  }
  if (generations_ > max_batches_) {
    fail(ErrorKind::data,
         "dynamic sampling: after {} generations only {} of {} samples belong to groups whose rewards vary "
         "(grpo.dynamic_sampling_max_gen_batches is {}); the task is too easy or too hard, or raise that limit",
         generations_, kept_.size(), train_rows_, max_batches_);
  }
  return std::nullopt;
}

}  // namespace hexad::algorithm
