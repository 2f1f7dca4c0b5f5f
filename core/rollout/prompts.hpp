// The prompts of a run: training ones in their order, validation ones, ready as token ids.
#pragma once
#include <vector>

#include "core/config/typed/run_config.hpp"
#include "core/data/dataset/contents.hpp"
#include "core/data/dataset/dataset.hpp"
#include "core/data/dataset/loader.hpp"
#include "core/data/dataset/processor.hpp"

namespace hexad::rollout {

// Tokens into which a conversation must fit, and a prompt with room for a response. The context bounds it, whatever the
// data section says.
int64_t input_limit(const config::RunConfig& run);

class Prompts {
 public:
  // Loads every dataset of data.train and data.validation and processes its records. Throws Error(data) naming
  // file:line.
  Prompts(const config::RunConfig& run, const data::TextTools& tools);

  // The next `num_prompts_per_step` prompts; goes on into the next epoch. Empty once max_num_epochs are through.
  std::vector<const data::Datum*> next();
  const std::vector<data::Datum>& validation() const { return validation_; }
  const data::Contents& train() const { return contents_; }  // the training prompts as a whole
  int64_t steps_per_epoch() const { return loader_.batches_per_epoch(); }
  int64_t epoch() const { return loader_.epoch(); }

  data::LoaderState state() const { return loader_.state(); }
  void restore(const data::LoaderState& state) { loader_.restore(state); }

 private:
  Prompts(const config::RunConfig& run, std::pair<std::vector<data::Datum>, std::vector<data::Datum>> datums);

  std::vector<data::Datum> train_, validation_;
  data::Contents contents_;
  data::DataLoader loader_;
  int64_t max_epochs_;
};

// What `hexad eval` samples from: the validation sets, or where there are none data.train, in their order. Throws
// Error(data).
std::vector<data::Datum> evaluation_prompts(const config::RunConfig& run, const data::TextTools& tools);

}  // namespace hexad::rollout
