// Data sets, as far as the rows tell that a run looks at before its first step, and the checkpoint that it would go on
// from.
#include <filesystem>

#include "app/check/findings.hpp"
#include "core/algorithm/run/identity.hpp"
#include "core/algorithm/run/train_run.hpp"
#include "core/algorithm/schedule/schedule.hpp"
#include "core/algorithm/supervised/examples.hpp"
#include "core/checkpoint/store.hpp"
#include "core/config/load/defaults.hpp"
#include "core/data/dataset/dataset.hpp"
#include "core/rollout/prompts.hpp"
#include "lib/hub/hub.hpp"

namespace hexad::cli {
namespace {

using config::DatasetConfig;
using config::RunConfig;

bool samples(const RunConfig& run) { return run.algorithm == config::Algorithm::grpo; }

// "data.train", or of several "data.train.1".
std::string key_of(const StartFindings& found, const std::string& list, size_t index) {
  const yaml::Node* sets = found.loaded.root.find(list);
  return sets && sets->is_list() ? fmt::format("{}.{}", list, index) : list;
}

template <typename Visit>  // key, set
void each_set(const StartFindings& found, Visit&& visit) {
  const RunConfig& run = found.run;
  for (size_t i = 0; i < run.data.train.size(); ++i) visit(key_of(found, "data.train", i), run.data.train[i]);
  for (size_t i = 0; i < run.data.validation.size(); ++i)
    visit(key_of(found, "data.validation", i), run.data.validation[i]);
}

std::string why_not_read(const DatasetConfig& set) {
  try {
    data::load_dataset(set);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// What keeps a run here from finding the files of a data set; empty: nothing. A name of the Hub that is here in part
// counts, a data_path that nothing goes by, and a dataset_name that is no reader's.
std::string why_absent(const DatasetConfig& set) {
  const std::string name = set.data_path.value_or(set.dataset_name);
  std::error_code unreadable;
  if (data::is_generated(set) || std::filesystem::exists(name, unreadable)) return "";
  try {
    if (hub::find(hub::Use::data, set.data_path ? "data_path" : "dataset_name", name)) return "";
  } catch (const Error& error) {
    return error.what();
  }
  const std::string why = why_not_read(set);
  const char* says = set.data_path ? "no such file or folder (data_path)" : "is neither a built-in dataset";
  return why.find(says) != why.npos ? why : "";
}

// The checkpoint that the run would go on from, as far as its sizes tell: whole, of this model and these data, at a
// step that the schedule has.
template <typename Data>
void check_resume(StartFindings& found, Data& data) {
  const config::CheckpointingConfig& saving = found.run.checkpointing;
  std::error_code unreadable;
  if (!saving.enabled || !found.start.resumes.value_or(saving.resume_if_exists)) return;
  if (!std::filesystem::is_directory(saving.checkpoint_dir, unreadable)) return;
  try {
    std::vector<std::pair<std::filesystem::path, std::string>> damaged;
    auto newest = checkpoint::Store::find_intact(saving, /*quick=*/true, damaged);
    if (!newest) return;
    checkpoint::Store::require_same(*newest, algorithm::identity_of(found.run, found.model->directory, data.train()));
    data.restore(algorithm::position_of(*newest));
    algorithm::make_schedule(found.run)->advance_to(newest->info.total_steps);
  } catch (const Error& error) {
    std::string message = error.what();
    const std::string key = "checkpointing.checkpoint_dir";
    if (message.starts_with(key + " ")) message.erase(0, key.size() + 1);
    found.error(key, message);
  }
}

// Makes of the rows what a run makes of them before its first step: the same rows, by the same functions.
void read_rows(StartFindings& found) {
  const rollout::ModelText& text = found.model->text;
  const RunConfig& run = found.run;
  if (!found.start.trains || !config::trains(found.loaded.root)) {
    rollout::evaluation_prompts(run, text.tools());
  } else if (samples(run)) {
    rollout::Prompts prompts(run, text.tools());
    check_resume(found, prompts);
  } else {
    algorithm::Examples examples(run, text);
    check_resume(found, examples);
  }
}

// The set that is to blame: the first that cannot be read by itself.
std::string blamed_set(const StartFindings& found) {
  std::string blamed;
  each_set(found, [&](const std::string& key, const DatasetConfig& set) {
    if (blamed.empty() && !why_not_read(set).empty()) blamed = key;
  });
  return blamed.empty() ? "data.train" : blamed;
}

}  // namespace

void check_data(StartFindings& found) {
  bool is_here = true;
  each_set(found, [&](const std::string& key, const DatasetConfig& set) {
    const std::string why = why_absent(set);
    if (why.empty()) return;
    is_here = false;
    found.not_here(key, why);
  });
  if (!is_here || !found.model) return;
  try {
    read_rows(found);
  } catch (const Error& error) {
    found.error(blamed_set(found), error.what());
  }
}

}  // namespace hexad::cli
