// Data sets, as far as their first rows tell, and the checkpoint that a run would go on from.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/check/findings.hpp"
#include "core/algorithm/run/identity.hpp"
#include "core/algorithm/run/train_run.hpp"
#include "core/algorithm/schedule/schedule.hpp"
#include "core/algorithm/supervised/examples.hpp"
#include "core/checkpoint/store.hpp"
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
void each_set(const StartFindings& found, const RunConfig& run, Visit&& visit) {
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

// Rows that are read of each set: enough for a batch, whatever validation takes away.
constexpr int64_t kRows = 256;
RunConfig with_first_rows(const StartFindings& found) {
  RunConfig few = found.run;
  const config::GrpoConfig& grpo = few.grpo;
  const double batch = samples(few) ? static_cast<double>(grpo.num_prompts_per_step) * grpo.batch_multiplier
                                    : static_cast<double>(few.policy.train_global_batch_size);
  for (auto* sets : {&few.data.train, &few.data.validation}) {
    for (DatasetConfig& set : *sets) {
      const double split = set.split_validation_size;
      const double rows = split < 1 ? batch / std::max(1 - split, 1e-3) : batch + split;
      const auto most = kRows + static_cast<int64_t>(std::min(std::ceil(rows), 1e9));
      set.max_samples = std::min(set.max_samples.value_or(most), most);
    }
  }
  return few;
}

// Whether some set may have more rows than are read.
bool is_cut(const StartFindings& found, const RunConfig& few) {
  bool cut = false;
  size_t at = 0;
  std::vector<int64_t> most;
  each_set(found, few, [&](const std::string&, const DatasetConfig& set) { most.push_back(*set.max_samples); });
  each_set(found, found.run, [&](const std::string&, const DatasetConfig& set) {
    const bool is_own_limit = set.max_samples == most[at++];
    cut |= !data::is_generated(set) && !is_own_limit;
  });
  return cut;
}

// What of an identity is known only where all rows are.
nlohmann::ordered_json without_contents(nlohmann::ordered_json identity) {
  for (const char* key : {"data_contents", "train_prompts", "train_examples"}) identity.erase(key);
  return identity;
}

// The checkpoint that the run would go on from, as far as its sizes tell: whole, of this model and these data, at a
// step that the schedule has. `cut`: `data` may be the first rows alone.
template <typename Data>
void check_resume(StartFindings& found, Data& data, bool cut) {
  const config::CheckpointingConfig& saving = found.run.checkpointing;
  std::error_code unreadable;
  cut = cut && data.train().size >= kRows;  // each that is cut has at least as many left
  if (!saving.enabled || !found.start.resumes.value_or(saving.resume_if_exists)) return;
  if (!std::filesystem::is_directory(saving.checkpoint_dir, unreadable)) return;
  try {
    std::vector<std::pair<std::filesystem::path, std::string>> damaged;
    auto newest = checkpoint::Store::find_intact(saving, /*quick=*/true, damaged);
    if (!newest) return;
    auto identity = algorithm::identity_of(found.run, found.model->directory, data.train());
    if (cut) {
      identity = without_contents(std::move(identity));
      newest->info.identity = without_contents(std::move(newest->info.identity));
    }
    checkpoint::Store::require_same(*newest, identity);
    const data::LoaderState position = algorithm::position_of(*newest);
    if (!cut) data.restore(position);
    algorithm::make_schedule(found.run)->advance_to(newest->info.total_steps);
  } catch (const Error& error) {
    std::string message = error.what();
    const std::string key = "checkpointing.checkpoint_dir";
    if (message.starts_with(key + " ")) message.erase(0, key.size() + 1);
    found.error(key, message);
  }
}

// Makes of the rows what a run makes of them before its first step.
void read_rows(StartFindings& found, const RunConfig& run, bool cut) {
  const rollout::ModelText& text = found.model->text;
  if (!found.start.trains || !config::trains(found.loaded.root)) {
    rollout::evaluation_prompts(run, text.tools());
  } else if (samples(run)) {
    rollout::Prompts prompts(run, text.tools());
    check_resume(found, prompts, cut);
  } else {
    algorithm::Examples examples(run, text);
    check_resume(found, examples, cut);
  }
}

// The set that is to blame: the first that cannot be read by itself.
std::string blamed_set(const StartFindings& found, const RunConfig& run) {
  std::string blamed;
  each_set(found, run, [&](const std::string& key, const DatasetConfig& set) {
    if (blamed.empty() && !why_not_read(set).empty()) blamed = key;
  });
  return blamed.empty() ? "data.train" : blamed;
}

}  // namespace

void check_data(StartFindings& found) {
  bool is_here = true;
  each_set(found, found.run, [&](const std::string& key, const DatasetConfig& set) {
    const std::string why = why_absent(set);
    if (why.empty()) return;
    is_here = false;
    found.not_here(key, why);
  });
  if (!is_here || !found.model) return;
  const RunConfig few = with_first_rows(found);
  const bool cut = is_cut(found, few);
  try {
    read_rows(found, few, cut);
  } catch (const Error&) {
    // Of a set as a whole the first rows may say what all of them do not.
    try {
      read_rows(found, found.run, /*cut=*/false);
    } catch (const Error& error) {
      found.error(blamed_set(found, few), error.what());
    }
  }
}

}  // namespace hexad::cli
