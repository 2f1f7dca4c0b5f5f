// A file in ROLL's form for tests that change one thing of it, and what is said of it.
#pragma once
#include "tests/compat/support.hpp"

namespace compat_test {

inline const std::string kRollFile = R"(rollout_batch_size: 8
prompt_length: 16
response_length: 16
num_return_sequences_in_group: 4
adv_estimator: grpo
pretrain: m
actor_train:
  training_args: {per_device_train_batch_size: 2, gradient_accumulation_steps: 4, lr_scheduler_type: constant}
  data_args: {file_name: [a.jsonl, b.jsonl]}
  strategy_args:
    strategy_name: megatron_train
    strategy_config: {tensor_model_parallel_size: 2}
  device_mapping: list(range(0,4))
actor_infer:
  strategy_args: {strategy_name: vllm}
  device_mapping: list(range(0,4))
rewards:
  math_rule: {worker_cls: MathRuleRewardWorker}
)";

// The texts of the notices, "KEYS: MESSAGE".
inline std::vector<std::string> notices_of(const hexad::config::Resolved& resolved) {
  std::vector<std::string> result;
  for (const hexad::config::Problem& notice : resolved.notices) result.push_back(notice.key + ": " + notice.message);
  return result;
}

// True if one notice names the key's last word and holds the words.
inline bool tells(const hexad::config::Resolved& resolved, const std::string& last_word, const std::string& words) {
  for (const hexad::config::Problem& notice : resolved.notices) {
    if (notice.key.find(last_word) != std::string::npos && notice.message.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace compat_test
