#include "core/rollout/prompts.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::rollout {
namespace {

void append(const config::RunConfig& run, const data::LoadedSet& set, const data::TextTools& tools,
            std::vector<data::Datum>& out, std::map<std::string, Answers>& answers) {
  const config::DatasetConfig& spec = *set.config;
  data::ProcessorOptions options = processor_options(run, spec);
  options.env_name = spec.env_name;
  for (const data::Record& record : set.data.records) {
    out.push_back(data::process(record, static_cast<int64_t>(out.size()), set.data.task_name, options, tools));
    if (data::is_generated(spec)) continue;
    ++answers[spec.env_name].rows;
    answers[spec.env_name].missing += trimmed(record.answer).empty();
  }
}

LoadedPrompts load(const config::RunConfig& run, const data::TextTools& tools) {
  data::LoadedSets sets = data::load_datasets(run.data);
  LoadedPrompts loaded;
  loaded.notes = std::move(sets.notes);
  loaded.formats = std::move(sets.formats);
  for (const data::LoadedSet& set : sets.train) append(run, set, tools, loaded.train, loaded.train_answers);
  for (const data::LoadedSet& set : sets.validation)
    append(run, set, tools, loaded.validation, loaded.validation_answers);
  if (loaded.train.empty()) fail(ErrorKind::data, "data.train has no prompts");
  return loaded;
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
    : train_(std::move(loaded.train)),
      validation_(std::move(loaded.validation)),
      answers_(std::move(loaded.train_answers)),
      notes_(std::move(loaded.notes)),
      formats_(std::move(loaded.formats)),
      contents_(data::contents_of(train_)),
      loader_(static_cast<int64_t>(train_.size()),
              {static_cast<int64_t>(static_cast<double>(run.grpo.num_prompts_per_step) * run.grpo.batch_multiplier),
               run.data.shuffle, true, static_cast<uint64_t>(run.grpo.seed)}),
      max_epochs_(run.grpo.max_num_epochs) {
  for (const auto& [name, of_rows] : loaded.validation_answers) {
    answers_[name].rows += of_rows.rows;
    answers_[name].missing += of_rows.missing;
  }
}

LoadedPrompts evaluation_prompts(const config::RunConfig& run, const data::TextTools& tools) {
  LoadedPrompts loaded = load(run, tools);
  if (!loaded.validation.empty()) return loaded;
  std::swap(loaded.train, loaded.validation);
  std::swap(loaded.train_answers, loaded.validation_answers);
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

std::vector<const data::Datum*> Prompts::next() {
  std::optional<std::vector<int64_t>> indices = loader_.next();
  if (!indices && loader_.epoch() < max_epochs_) indices = loader_.next();
  if (!indices || loader_.epoch() >= max_epochs_) return {};
  std::vector<const data::Datum*> prompts;
  for (const int64_t index : *indices) prompts.push_back(&train_[index]);
  return prompts;
}

}  // namespace hexad::rollout
