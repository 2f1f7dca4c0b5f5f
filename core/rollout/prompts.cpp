#include "core/rollout/prompts.hpp"

#include "lib/base/error.hpp"

namespace hexad::rollout {
namespace {

using Datums = std::pair<std::vector<data::Datum>, std::vector<data::Datum>>;

void append(const data::Dataset& dataset, const config::DatasetConfig& spec, int64_t max_length,
            const data::TextTools& tools, std::vector<data::Datum>& out) {
  data::ProcessorOptions options;
  options.processor = spec.processor;
  options.prompt = spec.prompt_file ? data::read_prompt_file(*spec.prompt_file) : "";
  options.system_prompt = spec.system_prompt_file ? data::read_prompt_file(*spec.system_prompt_file) : "";
  options.env_name = spec.env_name;
  options.max_seq_length = max_length;
  for (const data::Record& record : dataset.records) {
    out.push_back(data::process(record, static_cast<int64_t>(out.size()), dataset.task_name, options, tools));
  }
}

Datums load(const config::RunConfig& run, const data::TextTools& tools) {
  Datums datums;
  const int64_t max_length = input_limit(run);
  for (const config::DatasetConfig& spec : run.data.train) {
    const data::DatasetSplit split = data::load_dataset(spec);
    append(split.train, spec, max_length, tools, datums.first);
    if (split.validation && run.data.validation.empty())
      append(*split.validation, spec, max_length, tools, datums.second);
  }
  for (const config::DatasetConfig& spec : run.data.validation) {
    const data::DatasetSplit split = data::load_dataset(spec);
    append(split.validation ? *split.validation : split.train, spec, max_length, tools, datums.second);
  }
  if (datums.first.empty()) fail(ErrorKind::data, "data.train has no prompts");
  return datums;
}

}  // namespace

int64_t input_limit(const config::RunConfig& run) {
  return std::min(run.data.max_input_seq_length, run.policy.max_total_sequence_length);
}

Prompts::Prompts(const config::RunConfig& run, const data::TextTools& tools) : Prompts(run, load(run, tools)) {}

Prompts::Prompts(const config::RunConfig& run, Datums datums)
    : train_(std::move(datums.first)),
      validation_(std::move(datums.second)),
      contents_(data::contents_of(train_)),
      loader_(static_cast<int64_t>(train_.size()),
              {static_cast<int64_t>(static_cast<double>(run.grpo.num_prompts_per_step) * run.grpo.batch_multiplier),
               run.data.shuffle, true, static_cast<uint64_t>(run.grpo.seed)}),
      max_epochs_(run.grpo.max_num_epochs) {}

std::vector<data::Datum> evaluation_prompts(const config::RunConfig& run, const data::TextTools& tools) {
  auto [train, validation] = load(run, tools);
  return validation.empty() ? std::move(train) : std::move(validation);
}

std::vector<const data::Datum*> Prompts::next() {
  std::optional<std::vector<int64_t>> indices = loader_.next();
  if (!indices && loader_.epoch() < max_epochs_) indices = loader_.next();
  if (!indices || loader_.epoch() >= max_epochs_) return {};
  std::vector<const data::Datum*> prompts;
  for (const int64_t index : *indices) prompts.push_back(&train_[index]);
  return prompts;
}

}  // namespace hexad::rollout
