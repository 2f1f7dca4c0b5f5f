// One rollout: G samples of every prompt, scored; the batch that training starts from.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/config/data_config.hpp"
#include "core/data/dataset/processor.hpp"
#include "core/environment/plugin_environment.hpp"
#include "core/rollout/generation.hpp"
#include "core/rollout/model_text.hpp"

namespace hexad::rollout {

// Environments by env_name, made once.
using Environments = std::map<std::string, std::unique_ptr<environment::Environment>>;
// Those that the prompts name, with the arguments of env.<name>; plugins where that has the key `plugin`. `locate` tells
// where a key was written.
Environments make_environments(const config::EnvConfig& config, const std::vector<std::string>& names,
                               plugin::Registry& plugins, const plugin::Locate& locate = {});

struct Rollout {
  // B = prompts * G rows, the samples of a prompt next to each other, prompt and response in one sequence. Token columns:
  // input_ids i64, token_mask f32 (1 on response tokens), generation_logprobs f32 (0 on the prompt), and those that the
  // generator gave (routed_experts). Sample columns: rewards f32, sample_mask f32 (0: leaves the loss), prompt_length i64,
  // truncated u8.
  data::Batch batch;
  std::vector<std::string> responses;                    // [B]
  std::vector<const data::Datum*> prompts;               // [B]
  std::map<std::string, std::vector<float>> components;  // parts of the reward, [B] each
  std::map<std::string, double> metrics;                 // of the environment and the rollout, NeMo-RL's names
};

// What is drawn for one step.
struct Plan {
  const Sampling& sampling;
  int64_t prompts = 0, samples = 0;  // groups, and responses of each
  uint64_t seed = 0;
  int64_t step = 0;
};

// The requests of the group at place `index` of a step, a function of (seed, step, place, attempt). Borrows `prompt`.
std::vector<Request> group_requests(const Plan& plan, int64_t index, std::span<const int32_t> prompt,
                                    int64_t attempt = 0);
std::vector<int32_t> prompt_tokens(const data::Datum& prompt);

// What generators gave.
struct Drawn {
  std::vector<std::vector<int32_t>> prompts;  // one a prompt
  data::Batch completions;                    // one a sample, as Generation::generate returns them
  data::Batch columns;                        // of prompt and completion, one a sample
};

// Joins prompts and responses and has them scored.
Rollout finish_rollout(const Drawn& drawn, const Environments& environments, const ModelText& text,
                       const std::vector<const data::Datum*>& prompts, int64_t samples, int64_t step);

// Seeds of the samples are functions of (seed, step, row): a resumed run draws what the uninterrupted one would have.
Rollout run_rollout(Generation& generation, const Environments& environments, const ModelText& text,
                    const Sampling& sampling, const std::vector<const data::Datum*>& prompts,
                    int64_t generations_per_prompt, uint64_t seed, int64_t step);

}  // namespace hexad::rollout
