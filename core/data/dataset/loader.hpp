// The order in which a dataset is visited, resumable exactly.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace hexad::data {

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = true;
  bool drop_last = true;  // else the last batch of an epoch may be smaller
  uint64_t seed = 42;
  // For messages: what a batch counts, and the key of its size.
  std::string what = "prompts", batch_size_key = "grpo.num_prompts_per_step";
};

// Where the loader stands: `position` records of epoch `epoch` have been handed out.
struct LoaderState {
  int64_t epoch = 0;
  int64_t position = 0;
  int64_t size = 0;  // records of the dataset, to notice that it changed
  uint64_t seed = 0;
};
void to_json(nlohmann::ordered_json& json, const LoaderState& state);
// Throws Error(data) naming what is no count.
void from_json(const nlohmann::ordered_json& json, LoaderState& state);

// Hands out record indices in batches. The order of an epoch is a function of (seed, epoch) alone.
class DataLoader {
 public:
  // Throws Error(data) if the dataset has no full batch while drop_last.
  DataLoader(int64_t size, const LoaderOptions& options);

  // The next batch of this epoch; nothing at its end, after which the next call starts the next epoch.
  std::optional<std::vector<int64_t>> next();
  int64_t epoch() const { return epoch_; }
  int64_t batches_per_epoch() const;

  LoaderState state() const;
  // Continues where `state` was taken. Throws Error(data) if it belongs to a dataset of another size or to another
  // seed.
  void restore(const LoaderState& state);

 private:
  int64_t size_;
  LoaderOptions options_;
  int64_t epoch_ = 0;
  int64_t position_ = 0;
  std::vector<int64_t> order_;  // of a shuffled epoch, once it is asked for
};

}  // namespace hexad::data
