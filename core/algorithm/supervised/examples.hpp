// The examples of supervised training: conversations, or pairs of a chosen and a rejected one, as batches to train on.
#pragma once
#include <string>
#include <vector>

#include "core/config/typed/run_config.hpp"
#include "core/data/batch.hpp"
#include "core/data/dataset/contents.hpp"
#include "core/data/dataset/loader.hpp"
#include "core/data/dataset/processor.hpp"
#include "core/rollout/model_text.hpp"

namespace hexad::algorithm {

// Columns of a batch: input_ids (i64 [T]), token_mask (f32 [T], 1 on what is trained on), sample_mask (f32 [B], 0 for
// what was too long), unit_id (i64 [B], the example). The rows of a pair are neighbours, the chosen one first.
class Examples {
 public:
  // Loads every dataset of data.train and data.validation. Throws Error(data) naming file:line.
  Examples(const config::RunConfig& run, const rollout::ModelText& text);

  // The next policy.train_global_batch_size examples; goes on into the next epoch. No rows once max_num_epochs are
  // through.
  data::Batch next();
  // Batches of val_global_batch_size, the last perhaps of fewer; at most val_batches of them.
  const std::vector<data::Batch>& validation() const { return validation_; }

  const data::Contents& train() const { return contents_; }         // the training examples as a whole
  const data::Contents& validated() const { return validated_; }    // those of validation()
  const std::vector<std::string>& notes() const { return notes_; }  // lines about what validation leaves out
  const std::vector<std::string>& formats() const { return formats_; }
  int64_t steps_per_epoch() const { return loader_.batches_per_epoch(); }
  data::LoaderState state() const { return loader_.state(); }
  void restore(const data::LoaderState& state) { loader_.restore(state); }

 private:
  // The rows of one example.
  using Example = std::vector<data::Datum>;
  struct Loaded {
    std::vector<Example> train, validation;
    std::vector<std::string> notes, formats;
  };

  static Loaded load(const config::RunConfig& run, const rollout::ModelText& text);
  Examples(const config::RunConfig& run, Loaded loaded);

  std::vector<Example> train_;
  data::Contents contents_, validated_;
  std::vector<std::string> notes_, formats_;
  std::vector<data::Batch> validation_;
  data::DataLoader loader_;
  int64_t max_epochs_;
};

}  // namespace hexad::algorithm
