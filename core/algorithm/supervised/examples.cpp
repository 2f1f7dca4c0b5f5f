#include "core/algorithm/supervised/examples.hpp"

#include <algorithm>
#include <span>

#include "core/rollout/prompts.hpp"
#include "lib/base/error.hpp"

namespace hexad::algorithm {
namespace {

using ExampleRows = std::vector<data::Datum>;

// A list for each set.
using Sets = std::vector<table::Lazy<ExampleRows>>;
Sets examples_of(const config::RunConfig& run, const std::vector<data::LoadedSet>& sets,
                 const rollout::ModelText& text) {
  Sets parts;
  int64_t begin = 0;
  for (const data::LoadedSet& set : sets) {
    data::ProcessorOptions options = rollout::processor_options(run, *set.config);
    options.bos_token = text.bos_token;
    options.eos_token = text.eos_token;
    const auto rows_of = [=, pairs = has_pairs(run.algorithm), task = set.data.task_name, tools = text.tools()](
                             const data::Record& record, int64_t index) -> ExampleRows {
      if (!pairs) return {data::process(record, begin + index, task, options, tools)};
      data::Pair pair = data::process_pair(record, begin + index, task, options, tools);
      return {std::move(pair.chosen), std::move(pair.rejected)};
    };
    parts.push_back(set.data.records.map<ExampleRows>(rows_of));
    begin += set.data.records.size();
  }
  return parts;
}

data::Batch batch_of_examples(std::span<const ExampleRows> examples) {
  std::vector<int64_t> lengths, ids, units;
  std::vector<float> token_mask, sample_mask;
  for (size_t unit = 0; unit < examples.size(); ++unit) {
    for (const data::Datum& row : examples[unit]) {
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

// Leaves what val_batches takes of the validation examples, with a note of the others.
void limit_validation(const config::RunConfig& run, table::Lazy<ExampleRows>& examples,
                      std::vector<std::string>& notes) {
  const config::SupervisedConfig& config = run.supervised;
  const int64_t total = examples.size();
  // Their product may be more than a number holds.
  if (config.val_batches <= 0 || total / config.val_global_batch_size < config.val_batches) return;
  const int64_t taken = config.val_batches * config.val_global_batch_size;
  if (taken == total) return;
  examples = examples.first(taken);
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
  const auto train = examples_of(run, sets.train, text);
  loaded.trained = data::contents_of(train);
  loaded.train = table::Lazy<Example>::joined(train);
  if (loaded.train.empty()) fail(ErrorKind::data, "data.train has no examples");
  loaded.validation = table::Lazy<Example>::joined(examples_of(run, sets.validation, text));
  limit_validation(run, loaded.validation, loaded.notes);
  loaded.validated = data::contents_of({loaded.validation});
  return loaded;
}

Examples::Examples(const config::RunConfig& run, const rollout::ModelText& text) : Examples(run, load(run, text)) {}

Examples::Examples(const config::RunConfig& run, Loaded loaded)
    : loaded_(std::move(loaded)),
      too_long_(loaded_.trained, rollout::input_limit(run)),
      draws_(loaded_.train,
             {loaded_.train.size(),
              {run.policy.train_global_batch_size, run.data.shuffle, true, static_cast<uint64_t>(run.supervised.seed),
               has_pairs(run.algorithm) ? "pairs" : "conversations", "policy.train_global_batch_size"}},
             run.supervised.max_num_epochs),
      validation_batch_(run.supervised.val_global_batch_size) {}

data::Batch Examples::next() {
  const std::vector<Example> examples = draws_.next();
  if (examples.empty()) return {};
  for (const Example& example : examples) too_long_.see(example.front());
  return batch_of_examples(examples);
}

table::Lazy<data::Batch> Examples::validation() const {
  const int64_t all = loaded_.validation.size(), most = validation_batch_;
  return {all / most + (all % most != 0), [examples = loaded_.validation, most](int64_t index) {
            return batch_of_examples(examples.range(index * most, most));
          }};
}

}  // namespace hexad::algorithm
