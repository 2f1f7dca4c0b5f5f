// One rollout: G samples of every prompt, scored; the batch that training starts from.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/config/typed/data_config.hpp"
#include "core/data/dataset/processor.hpp"
#include "core/environment/make.hpp"
#include "core/rollout/generation.hpp"
#include "core/rollout/model_text.hpp"

namespace hexad::rollout {

// What environments report beside their scores. Of several calls, environments, turns and rollouts of a step: counts
// (num_*, of a whole environment or of a part of it) as their sum, the rest as the mean over the samples that it was
// reported of.
class Reported {
 public:
  void add(const std::map<std::string, double>& metrics, int64_t samples);
  void add(const Reported& more);
  std::map<std::string, double> values() const;

 private:
  struct Entry {
    double sum = 0, mean = 0, samples = 0;
  };
  void add(const std::string& name, const Entry& more);
  std::map<std::string, Entry> entries_;
};

// Environments by env_name, made once.
using Environments = std::map<std::string, std::unique_ptr<environment::Environment>>;
// Those that the prompts name, made from env.<name>.
Environments make_environments(const config::EnvConfig& config, const std::vector<std::string>& names,
                               const environment::Services& services);

struct Rollout {
  // B = prompts * G rows, the samples of a prompt next to each other, prompt and responses in one sequence. Token
  // columns: input_ids i64, token_mask f32 (1 on what the model wrote), generation_logprobs f32 (0 on the rest), and
  // those that the generator gave (routed_experts). Sample columns: rewards f32, sample_mask f32 (0: leaves the loss),
  // invalid u8 (1: has no reward, counts nowhere), prompt_length i64, truncated u8.
  data::Batch batch;
  std::vector<std::string> responses;                    // [B] all behind the prompt
  std::vector<data::SharedDatum> prompts;                // [B]
  std::vector<std::optional<std::string>> answers;       // [B] as Conversation::answer
  std::vector<std::string> why_invalid;                  // [B] as Conversation::why_invalid
  std::map<std::string, std::vector<float>> components;  // parts of the reward, [B] each
  std::map<std::string, double> metrics;                 // the engine's own, NeMo-RL's names
  Reported reported;                                     // by environments
  std::map<std::string, double> of_generators;           // likewise
  double environment_seconds = 0;                        // that a rollout waited for rewards

  // These rows, in this order; the metrics stay those of all.
  Rollout select(std::span<const int64_t> rows) const;
  // Adds rows of `other`, 0 for parts of rewards that one of both lacks. Metrics: `other`'s; those of environments are
  // of both.
  void append(const Rollout& other);
};

// What is sampled at once.
struct Plan {
  const Sampling& sampling;
  int64_t prompts = 0, samples = 0;  // groups, and samples of each
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t round = 0;                 // counts the rollouts of one step
  int64_t turns = 1;                 // most responses of a sample; an environment's replies stand between them
  bool ends_when_truncated = false;  // a response that the token limit cuts off is its sample's last one
  int64_t at_once = 0;               // groups that are drawn together, which changes none of their samples; 0: all
  int64_t first = 0;                 // the place of the first prompt that is given among the `prompts`
};

struct Conversation;
// Ended conversations as a rollout, `samples` of every prompt next to each other; `columns`: what generators gave along
// with them. Throws Error(worker) if none of them is valid.
Rollout rollout_of(std::span<const Conversation> conversations, const data::Batch& columns, int64_t samples,
                   int64_t step, const Reported& reported);

// Samples are a function of the weights and the plan: a resumed run samples what the uninterrupted one would have.
// Tokens that the model wrote are never tokenized again. Where an environment replies, the sample goes on until it
// replies no more, plan.turns are over, the plan ends it with a truncated response, or the context has no room for the
// reply (the sample counts as truncated then).
// Throws Error(worker) when no sample could be scored, and Interrupted.
Rollout run_rollout(Generation& generation, const Environments& environments, const ModelText& text,
                    const std::vector<data::SharedDatum>& prompts, const Plan& plan);

}  // namespace hexad::rollout
