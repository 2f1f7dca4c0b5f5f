#include "compat/roll/pipelines.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "lib/base/text.hpp"

namespace hexad::config::roll {
namespace {

struct Pipeline {
  const char* name;
  std::vector<const char*> marks;  // keys that no other pipeline has
  std::vector<const char*> keys;   // further keys that RLVR does not have
  const char* instead;             // null: it is translated
};

const std::vector<Pipeline>& others() {
  static const std::vector<Pipeline> table = {
      {"supervised",
       {"sft_train"},
       {"system_key", "prompt_key", "query_key", "response_key"},
       "write the run with a block sft (docs/supervised.md): data.train has data_path for data_args.file_name, "
       "input_key "
       "for prompt_key and output_key for response_key"},
      {"DPO", {"chosen_key", "rejected_key", "beta", "ipo"}, {"label_smoothing"}, nullptr},
      {"agentic",
       {"train_env_manager", "val_env_manager", "custom_envs", "custom_env", "env_manager_cls"},
       {"render_save_dir", "reward_normalization", "env_monitor", "dirty_data_mask", "open_feedback_turn",
        "use_token_reward", "batch_adjust_mode", "episode_reward_weight", "step_reward_weight", "step_reward_gamma",
        "ratio_type", "exp_mode", "partial_gpu_mode", "parse_tool_call_parameter_to_dict", "skip_mock_system_prompt",
        "max_tokens_per_step", "max_actions_per_traj", "agent_system_template", "agent_template"},
       "write the run with a block grpo and an environment that answers turn by turn (docs/turns.md)"},
      {"distillation",
       {"student", "student_train", "student_infer", "student_pretrain", "teacher_pretrain"},
       {"teacher", "question_key", "answer_key", "logits_topk", "distill_loss_weight", "kd_temperature",
        "teacher_temperature", "kd_objective", "adaptive_kl_alpha", "skew_lambda", "distill_on_prompt",
        "logits_transfer_backend", "pure_opd_pipeline_type", "is_pure_opd", "use_opd"},
       "nothing here trains a model on another one's distributions; a block sft (docs/supervised.md) trains on texts "
       "that the teacher wrote"},
  };
  return table;
}

std::vector<std::string> present(const yaml::Node& file, const std::vector<const char*>& names) {
  std::vector<std::string> result;
  for (const char* name : names) {
    const yaml::Node* found = file.child(name);
    if (found && !found->is_null()) result.emplace_back(name);
  }
  return result;
}

}  // namespace

std::optional<Problem> other_pipeline(const yaml::Node& file) {
  for (const Pipeline& pipeline : others()) {
    if (!pipeline.instead) continue;
    const std::vector<std::string> marks = present(file, pipeline.marks);
    if (marks.empty()) continue;
    std::vector<std::string> keys = marks;
    std::ranges::move(present(file, pipeline.keys), std::back_inserter(keys));
    return Problem{Problem::Severity::error, file.child(marks[0])->location(), joined(keys),
                   fmt::format("ROLL's {} pipeline is not available in this version: of ROLL's files those of its RLVR "
                               "and DPO pipelines are read. Nearest: {}",
                               pipeline.name, pipeline.instead)};
  }
  return std::nullopt;
}

bool is_preferences(const yaml::Node& file) {
  if (file.child("actor_infer") || file.child("rewards")) return false;
  return std::ranges::any_of(
      others(), [&](const Pipeline& pipeline) { return !pipeline.instead && !present(file, pipeline.marks).empty(); });
}

void add_other_pipelines(Schema& schema) {
  for (const Pipeline& pipeline : others()) {
    for (const auto& names : {pipeline.marks, pipeline.keys}) {
      for (const char* name : names) {
        if (schema.find(name)) continue;
        schema.add(name, kAny, "", "")
            .open()
            .accepted(fmt::format("ROLL's {} pipeline reads it, RLVR does not", pipeline.name));
      }
    }
  }
}

}  // namespace hexad::config::roll
