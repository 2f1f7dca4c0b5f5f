// The typed view of the `policy` block. Field names are the keys; docs/config.md says what each means.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/typed/run_facts.hpp"

namespace hexad::config {

struct TokenizerConfig {
  std::string name;
  // Null: plain concatenation of the messages, as in NeMo-RL; "default" or an absent key: the tokenizer's own template;
  // "*.jinja": a file; else the template itself.
  std::optional<std::string> chat_template = "default";
  nlohmann::ordered_json chat_template_kwargs = nlohmann::ordered_json::object();
};

struct BatchingConfig {  // dynamic_batching and sequence_packing
  bool enabled = false;
  int64_t train_mb_tokens = 0;
  int64_t logprob_mb_tokens = 0;
  int64_t sequence_length_round = 64;                       // dynamic batching only
  std::string algorithm = "modified_first_fit_decreasing";  // packing only
  std::string microbatch_order = "packer";                  // packing only
};

struct OptimizerConfig {
  std::string name = "torch.optim.AdamW";
  nlohmann::ordered_json kwargs = nlohmann::ordered_json::object();
};

struct ColocatedConfig {
  bool enabled = true;
  int64_t sleep_level = 1;               // what the generator gives back while the policy computes
  std::optional<int64_t> gpus_per_node;  // resources.gpus_per_node
  std::optional<int64_t> num_nodes;      // resources.num_nodes
};

struct GenerationConfig {
  std::string plugin;  // its name, or its path
  int64_t max_new_tokens = 512;
  double temperature = 1;
  double top_p = 1;
  std::optional<int64_t> top_k;  // absent: off (null and -1)
  std::optional<double> min_p;
  std::optional<std::vector<int64_t>> stop_token_ids;  // absent: the tokenizer's EOS
  std::vector<std::string> stop_strings;
  bool ignore_eos = false;
  std::vector<int64_t> imposed_lengths;  // of a training rollout's responses, in order; empty: what is sampled
  int64_t replica_size = 1;              // neighbouring workers that serve the same requests together
  ColocatedConfig colocated;
};

struct PolicyConfig {
  std::string backend;  // the plugin: its name, or its path
  std::string model_name;
  std::optional<int64_t> random_init_seed;  // absent: weights come from the files
  TokenizerConfig tokenizer;
  nlohmann::ordered_json hf_config_overrides = nlohmann::ordered_json::object();
  int64_t train_global_batch_size = 512;
  int64_t train_micro_batch_size = 4;
  int64_t logprob_batch_size = 4;
  int64_t max_total_sequence_length = 512;
  std::string precision = "bfloat16";
  std::optional<int64_t> logprob_chunk_size;
  bool deterministic = false;
  bool batch_invariant = false;
  BatchingConfig dynamic_batching;
  BatchingConfig sequence_packing;
  int64_t make_sequence_length_divisible_by = 1;
  std::optional<double> max_grad_norm = 1.0;
  OptimizerConfig optimizer;
  std::optional<double> learning_rate;   // of a backend with a key of its own for it
  std::optional<ScheduleFact> schedule;  // likewise; it stands in the place of `scheduler`
  nlohmann::ordered_json scheduler;      // null, {name, kwargs}, or a list of those with one {milestones: [...]}
  GenerationConfig generation;
};

}  // namespace hexad::config
