// `hexad eval`: samples of a data set's prompts, scored by their environments.
#pragma once
#include <nlohmann/json.hpp>

#include "core/cluster/process/spawner.hpp"
#include "core/config/check.hpp"
#include "core/config/typed/system_config.hpp"
#include "core/telemetry/run_log.hpp"

namespace hexad::inference {

struct EvaluateOptions {
  std::string program;                  // this executable: workers are started from it
  cluster::Spawner* spawner = nullptr;  // null: one worker on a thread of this process
};

struct Evaluation {
  double score = 0;                // eval.metric over the prompts that have one
  int64_t prompts = 0, right = 0;  // of the samples: those with reward 1
  int64_t unscored = 0;            // prompts with fewer than eval.k_value samples that could be scored
  telemetry::Metrics metrics;      // means: reward (of scored samples), lengths, truncation_rate, pass@1 ...
  std::string not_saved;           // why eval.save_path does not hold all of it; empty: it does
};

// eval.metric with its k: "pass@4".
std::string metric_name(const config::EvalConfig& eval);

// {"score", "prompts", "right", and each metric}.
nlohmann::ordered_json to_json(const Evaluation& result);

// The validation sets of the configuration, or where it has none those of data.train, in their order. A sample is right
// where its reward is 1; one that is invalid counts nowhere. Throws Error.
Evaluation evaluate(const config::Resolved& resolved, const EvaluateOptions& options);

}  // namespace hexad::inference
