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

// Seeds of the samples are functions of (seed, step, row): a resumed run draws what the uninterrupted one would have.
Rollout run_rollout(Generation& generation, const Environments& environments, const ModelText& text,
                    const Sampling& sampling, const std::vector<const data::Datum*>& prompts,
                    int64_t generations_per_prompt, uint64_t seed, int64_t step);

}  // namespace hexad::rollout
