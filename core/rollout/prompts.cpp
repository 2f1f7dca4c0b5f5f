#include "core/rollout/prompts.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::rollout {
namespace {

PromptSet prompts_of(const config::RunConfig& run, const std::vector<data::LoadedSet>& sets,
                     const data::TextTools& tools) {
  PromptSet result;
  std::vector<table::Lazy<data::Datum>> parts;
  int64_t begin = 0;
  for (const data::LoadedSet& set : sets) {
    const config::DatasetConfig& spec = *set.config;
    data::ProcessorOptions options = processor_options(run, spec);
    options.env_name = spec.env_name;
    result.environments.insert(spec.env_name);
    parts.push_back(
        set.data.records.map<data::Datum>([=, task = set.data.task_name](const data::Record& record, int64_t index) {
          return data::process(record, begin + index, task, options, tools);
        }));
    begin += set.data.records.size();
    if (data::is_generated(spec)) continue;
    for (const data::Record& record : set.data.records.first(data::kLookedAt)) {
      ++result.answers[spec.env_name].rows;
      result.answers[spec.env_name].missing += trimmed(record.answer).empty();
    }
  }
  result.contents = data::contents_of(parts);
  result.prompts =
      table::Lazy<data::Datum>::joined(std::move(parts)).map<data::SharedDatum>([](data::Datum&& datum, int64_t) {
        return std::make_shared<const data::Datum>(std::move(datum));
      });
  return result;
}

LoadedPrompts load(const config::RunConfig& run, const data::TextTools& tools) {
  data::LoadedSets sets = data::load_datasets(run.data);
  LoadedPrompts loaded{prompts_of(run, sets.train, tools), prompts_of(run, sets.validation, tools),
                       std::move(sets.notes), std::move(sets.formats)};
  if (loaded.train.prompts.empty()) fail(ErrorKind::data, "data.train has no prompts");
  return loaded;
}

data::DataLoader loader_of(const config::GrpoConfig& grpo, bool shuffle, int64_t size) {
  const double count = static_cast<double>(grpo.num_prompts_per_step) * grpo.batch_multiplier;
  return {size, {static_cast<int64_t>(count), shuffle, true, static_cast<uint64_t>(grpo.seed)}};
}

}  // namespace

int64_t input_limit(const config::RunConfig& run) {
  return std::min(run.data.max_input_seq_length, run.policy.max_total_sequence_length);
}

data::ProcessorOptions processor_options(const config::RunConfig& run, const config::DatasetConfig& spec) {
  data::ProcessorOptions options;
  options.processor = spec.processor;
  options.prompt = spec.prompt_file ? data::read_prompt_file(*spec.prompt_file) : "";
  options.system_prompt = spec.system_prompt_file ? data::read_prompt_file(*spec.system_prompt_file) : "";
  options.max_seq_length = input_limit(run);
  options.add_bos = run.data.add_bos;
  options.add_eos = run.data.add_eos;
  options.add_generation_prompt = run.data.add_generation_prompt;
  options.only_unmask_final = run.supervised.only_unmask_final;
  return options;
}

Prompts::Prompts(const config::RunConfig& run, const data::TextTools& tools) : Prompts(run, load(run, tools)) {}

Prompts::Prompts(const config::RunConfig& run, LoadedPrompts loaded)
    : loaded_(std::move(loaded)),
      answers_(loaded_.train.answers),
      too_long_(loaded_.train.contents, input_limit(run) - 1),
      draws_(loaded_.train.prompts, loader_of(run.grpo, run.data.shuffle, loaded_.train.prompts.size()),
             run.grpo.max_num_epochs) {
  for (const auto& [name, of_rows] : loaded_.validation.answers) {
    answers_[name].rows += of_rows.rows;
    answers_[name].missing += of_rows.missing;
  }
}

LoadedPrompts evaluation_prompts(const config::RunConfig& run, const data::TextTools& tools) {
  LoadedPrompts loaded = load(run, tools);
  if (loaded.validation.prompts.empty()) std::swap(loaded.train, loaded.validation);
  return loaded;
}

std::vector<std::string> missing_answers(const AnswersByEnvironment& answers, const Environments& environments) {
  std::vector<std::string> lines;
  for (const auto& [name, of_rows] : answers) {
    const auto found = environments.find(name);
    if (of_rows.missing == 0 || found == environments.end() || !found->second->compares_answer()) continue;
    lines.push_back(fmt::format(
        "env.{}: {} of {} rows have no answer: a reward that compares with it is 0 there (output_key names the column)",
        name, of_rows.missing, of_rows.rows));
  }
  return lines;
}

std::vector<data::SharedDatum> Prompts::next() {
  std::vector<data::SharedDatum> prompts = draws_.next();
  for (const data::SharedDatum& prompt : prompts) too_long_.see(*prompt);
  return prompts;
}

}  // namespace hexad::rollout
