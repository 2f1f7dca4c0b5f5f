// The examples of supervised training: conversations, or pairs of a chosen and a rejected one, as batches to train on.
#pragma once
#include <string>
#include <vector>

#include "core/config/typed/run_config.hpp"
#include "core/data/batch.hpp"
#include "core/data/dataset/contents.hpp"
#include "core/data/dataset/draws.hpp"
#include "core/data/dataset/processor.hpp"
#include "core/rollout/model_text.hpp"

namespace hexad::algorithm {

// Columns of a batch: input_ids (i64 [T]), token_mask (f32 [T], 1 on what is trained on), sample_mask (f32 [B], 0 for
// what was too long), unit_id (i64 [B], the example). The rows of a pair are neighbours, the chosen one first.
class Examples {
 public:
  // Opens every dataset of data.train and data.validation, and looks at its first records; borrows `text`. Throws
  // Error(data) naming file:line, as next() and validation() do of a row that nobody has looked at.
  Examples(const config::RunConfig& run, const rollout::ModelText& text);

  // The next policy.train_global_batch_size examples; goes on into the next epoch. No rows once max_num_epochs are
  // through.
  data::Batch next();
  data::DrawnTooLong& too_long() { return too_long_; }  // of what next() gave
  bool validates() const { return !loaded_.validation.empty(); }
  // Batches of val_global_batch_size, the last perhaps of fewer; at most val_batches of them. Each is made when it is
  // asked for.
  table::Lazy<data::Batch> validation() const;

  const data::Contents& train() const { return loaded_.trained; }          // the training examples as a whole
  const data::Contents& validated() const { return loaded_.validated; }    // those of validation()
  const std::vector<std::string>& notes() const { return loaded_.notes; }  // lines about what validation leaves out
  const std::vector<std::string>& formats() const { return loaded_.formats; }
  int64_t steps_per_epoch() const { return draws_.batches_per_epoch(); }
  data::LoaderState state() const { return draws_.state(); }
  void restore(const data::LoaderState& state) { draws_.restore(state); }

 private:
  // The rows of one example.
  using Example = std::vector<data::Datum>;
  struct Loaded {
    table::Lazy<Example> train, validation;
    data::Contents trained, validated;
    std::vector<std::string> notes, formats;
  };

  static Loaded load(const config::RunConfig& run, const rollout::ModelText& text);
  Examples(const config::RunConfig& run, Loaded loaded);

  Loaded loaded_;
  data::DrawnTooLong too_long_;
  data::Draws<Example> draws_;
  int64_t validation_batch_;
};

}  // namespace hexad::algorithm
