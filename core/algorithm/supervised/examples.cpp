#include "core/algorithm/supervised/examples.hpp"

#include <algorithm>
#include <span>

#include "core/rollout/prompts.hpp"
#include "lib/base/error.hpp"

namespace hexad::algorithm {
namespace {

using ExampleRows = std::vector<data::Datum>;

void append_examples(const config::RunConfig& run, const data::LoadedSet& set, const rollout::ModelText& text,
                     std::vector<ExampleRows>& out) {
  const data::Dataset& dataset = set.data;
  data::ProcessorOptions options = rollout::processor_options(run, *set.config);
  options.bos_token = text.bos_token;
  options.eos_token = text.eos_token;
  const data::TextTools tools = text.tools();
  for (const data::Record& record : dataset.records) {
    const int64_t index = static_cast<int64_t>(out.size());
    if (!has_pairs(run.algorithm)) {
      out.push_back({data::process(record, index, dataset.task_name, options, tools)});
      continue;
    }
    data::Pair pair = data::process_pair(record, index, dataset.task_name, options, tools);
    out.push_back({std::move(pair.chosen), std::move(pair.rejected)});
  }
}

data::Batch batch_of_examples(std::span<const ExampleRows* const> examples) {
  std::vector<int64_t> lengths, ids, units;
  std::vector<float> token_mask, sample_mask;
  for (size_t unit = 0; unit < examples.size(); ++unit) {
    for (const data::Datum& row : *examples[unit]) {
      units.push_back(static_cast<int64_t>(unit));
      lengths.push_back(static_cast<int64_t>(row.token_ids.size()));
      ids.insert(ids.end(), row.token_ids.begin(), row.token_ids.end());
      token_mask.insert(token_mask.end(), row.token_mask.begin(), row.token_mask.end());
      sample_mask.push_back(row.loss_multiplier);
    }
  }
  data::Batch batch = data::Batch::of_lengths(lengths);
  batch.set("input_ids", data::Tensor::of(ids), data::Axis::token);
  batch.set("token_mask", data::Tensor::of(token_mask), data::Axis::token);
  batch.set("unit_id", data::Tensor::of(units), data::Axis::sample);
  batch.set("sample_mask", data::Tensor::of(sample_mask), data::Axis::sample);
  return batch;
}

std::vector<data::Batch> validation_batches(int64_t size, const std::vector<ExampleRows>& examples) {
  std::vector<data::Batch> batches;
  std::vector<const ExampleRows*> part;
  for (const ExampleRows& example : examples) {
    part.push_back(&example);
    if (static_cast<int64_t>(part.size()) < size && &example != &examples.back()) continue;
    batches.push_back(batch_of_examples(part));
    part.clear();
  }
  return batches;
}

// Leaves what val_batches takes of the validation examples, with a note of the others.
void limit_validation(const config::RunConfig& run, std::vector<ExampleRows>& examples,
                      std::vector<std::string>& notes) {
  const config::SupervisedConfig& config = run.supervised;
  const auto total = static_cast<int64_t>(examples.size());
  // Their product may be more than a number holds.
  if (config.val_batches <= 0 || total / config.val_global_batch_size < config.val_batches) return;
  const int64_t taken = config.val_batches * config.val_global_batch_size;
  if (taken == total) return;
  examples.resize(static_cast<size_t>(taken));
  notes.push_back(
      fmt::format("validation takes the first {0} of {1} {2} ({3}.val_batches {4} of {3}."
                  "val_global_batch_size {5})",
                  taken, total, has_pairs(run.algorithm) ? "pairs" : "conversations", name_of(run.algorithm),
                  config.val_batches, config.val_global_batch_size));
}

}  // namespace

Examples::Loaded Examples::load(const config::RunConfig& run, const rollout::ModelText& text) {
  data::LoadedSets sets = data::load_datasets(run.data);
  Loaded loaded;
  loaded.notes = std::move(sets.notes);
  loaded.formats = std::move(sets.formats);
  for (const data::LoadedSet& set : sets.train) append_examples(run, set, text, loaded.train);
  for (const data::LoadedSet& set : sets.validation) append_examples(run, set, text, loaded.validation);
  if (loaded.train.empty()) fail(ErrorKind::data, "data.train has no examples");
  limit_validation(run, loaded.validation, loaded.notes);
  return loaded;
}

Examples::Examples(const config::RunConfig& run, const rollout::ModelText& text) : Examples(run, load(run, text)) {}

Examples::Examples(const config::RunConfig& run, Loaded loaded)
    : train_(std::move(loaded.train)),
      contents_(data::contents_of(train_)),
      validated_(data::contents_of(loaded.validation)),
      notes_(std::move(loaded.notes)),
      formats_(std::move(loaded.formats)),
      validation_(validation_batches(run.supervised.val_global_batch_size, loaded.validation)),
      loader_(static_cast<int64_t>(train_.size()),
              {run.policy.train_global_batch_size, run.data.shuffle, true, static_cast<uint64_t>(run.supervised.seed),
               has_pairs(run.algorithm) ? "pairs" : "conversations", "policy.train_global_batch_size"}),
      max_epochs_(run.supervised.max_num_epochs) {}

data::Batch Examples::next() {
  std::optional<std::vector<int64_t>> indices = loader_.next();
  if (!indices && loader_.epoch() < max_epochs_) indices = loader_.next();
  if (!indices || loader_.epoch() >= max_epochs_) return {};
  std::vector<const Example*> examples;
  for (const int64_t index : *indices) examples.push_back(&train_[index]);
  return batch_of_examples(examples);
}

}  // namespace hexad::algorithm
