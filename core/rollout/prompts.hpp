// The prompts of a run: training ones in their order, validation ones. They become token ids when they are drawn.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/config/typed/run_config.hpp"
#include "core/data/dataset/contents.hpp"
#include "core/data/dataset/dataset.hpp"
#include "core/data/dataset/draws.hpp"
#include "core/data/dataset/processor.hpp"
#include "core/rollout/rollout.hpp"

namespace hexad::rollout {

// Tokens into which a conversation must fit, and a prompt with room for a response. The context bounds it, whatever the
// data section says.
int64_t input_limit(const config::RunConfig& run);

// How the rows of a dataset are processed, but for the environment and the tokens at the ends of texts. Throws
// Error(data) for prompt files.
data::ProcessorOptions processor_options(const config::RunConfig& run, const config::DatasetConfig& spec);

// Rows that were looked at for one environment, and those of them that have no answer.
struct Answers {
  int64_t rows = 0, missing = 0;
};

using AnswersByEnvironment = std::map<std::string, Answers>;

// What the datasets of a run come to.
struct PromptSet {
  table::Lazy<data::SharedDatum> prompts;
  data::Contents contents;
  std::set<std::string> environments;  // that they name
  AnswersByEnvironment answers;
};
struct LoadedPrompts {
  PromptSet train, validation;
  std::vector<std::string> notes;    // lines about what is left out of validation
  std::vector<std::string> formats;  // lines about formats that columns told
};

class Prompts {
 public:
  // Opens every dataset of data.train and data.validation, and looks at its first records; `tools` borrows what it is
  // made of. Throws Error(data) naming file:line, as next() does of a row that nobody has looked at.
  Prompts(const config::RunConfig& run, const data::TextTools& tools);

  // The next `num_prompts_per_step` prompts; goes on into the next epoch. Empty once max_num_epochs are through.
  std::vector<data::SharedDatum> next();
  data::DrawnTooLong& too_long() { return too_long_; }  // of what next() gave
  const PromptSet& validation() const { return loaded_.validation; }
  const data::Contents& train() const { return loaded_.train.contents; }  // the training prompts as a whole
  const AnswersByEnvironment& answers() const { return answers_; }
  const std::vector<std::string>& notes() const { return loaded_.notes; }
  const std::vector<std::string>& formats() const { return loaded_.formats; }
  int64_t steps_per_epoch() const { return draws_.batches_per_epoch(); }
  int64_t epoch() const { return draws_.epoch(); }

  data::LoaderState state() const { return draws_.state(); }
  void restore(const data::LoaderState& state) { draws_.restore(state); }

 private:
  Prompts(const config::RunConfig& run, LoadedPrompts loaded);

  LoadedPrompts loaded_;
  AnswersByEnvironment answers_;  // of both
  data::DrawnTooLong too_long_;
  data::Draws<data::SharedDatum> draws_;
};

// What `hexad eval` samples from, as `validation`: the validation sets, or where there are none data.train, in their
// order. Throws Error(data).
LoadedPrompts evaluation_prompts(const config::RunConfig& run, const data::TextTools& tools);

// A line for each environment whose rewards compare with the answer, and some of whose rows have none.
std::vector<std::string> missing_answers(const AnswersByEnvironment& answers, const Environments& environments);

}  // namespace hexad::rollout
