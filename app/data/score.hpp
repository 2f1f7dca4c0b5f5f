// Rewards of rows before any training: of their own answers, or of what the model answers.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cluster/process/spawner.hpp"
#include "core/config/check.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/data/dataset/processor.hpp"
#include "core/rollout/model_text.hpp"

namespace hexad::dataset_view {

struct Scored {
  std::string response = {};
  std::optional<float> reward = {};              // nothing: the environment could not score it
  std::string why_none = {};                     // "": it does not say
  std::map<std::string, float> components = {};  // parts of the reward
};

// Of each prompt one response with its reward. Throws the Error that a step of the run would end with.
using Scorer = std::function<std::vector<Scored>(std::span<const data::SharedDatum> prompts)>;

// Borrowed, as long as the scorer that is made of it lives.
struct ScoredRun {
  const config::Resolved& resolved;
  const config::RunConfig& config;
  const rollout::ModelText& text;
};

// The row's answer is the response, as if the model had written it. Throws Error(config) for a run without rewards, as
// the other does; and Error where an environment cannot be made.
Scorer expected_answers(const ScoredRun& run);

// The run's generator answers, by its sampling; workers are started, from `program`. The environment may reply, as in a
// rollout.
Scorer generated_answers(const ScoredRun& run, const std::string& program, cluster::Spawner* spawner);

}  // namespace hexad::dataset_view
