#include "compat/roll/pipelines.hpp"

#include <vector>

#include <fmt/format.h>

namespace hexad::config::roll {
namespace {

struct Pipeline {
  const char* name;
  std::vector<const char*> marks;  // keys that no other pipeline has
  std::vector<const char*> keys;   // further keys that RLVR does not have
  const char* instead;
  bool rolls_out = true;
};

const std::vector<Pipeline>& others() {
  static const std::vector<Pipeline> table = {
      {"supervised",
       {"sft_train"},
       {"system_key", "prompt_key", "query_key", "response_key"},
       "write the run with a block sft (docs/supervised.md): data.train has data_path for data_args.file_name, "
       "input_key "
       "for prompt_key and output_key for response_key"},
      {"DPO",
       {"chosen_key", "rejected_key", "beta", "ipo"},
       {"label_smoothing"},
       "write the run with a block dpo (docs/supervised.md): dpo.reference_policy_kl_penalty is beta",
       false},
      {"agentic",
       {"train_env_manager", "val_env_manager", "custom_envs"},
       {"custom_env",
        "render_save_dir",
        "reward_normalization",
        "env_monitor",
        "dirty_data_mask",
        "open_feedback_turn",
        "use_token_reward",
        "batch_adjust_mode",
        "episode_reward_weight",
        "step_reward_weight",
        "step_reward_gamma",
        "ratio_type",
        "exp_mode",
        "partial_gpu_mode",
        "parse_tool_call_parameter_to_dict",
        "skip_mock_system_prompt",
        "max_tokens_per_step",
        "max_actions_per_traj",
        "agent_system_template",
        "agent_template"},
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

}  // namespace

std::optional<Problem> other_pipeline(const yaml::Node& file) {
  // `defaults` is there as long as parents are not read, which may say so.
  const bool rolls_out = file.child("actor_infer") || file.child("rewards") || file.child("defaults");
  for (const Pipeline& pipeline : others()) {
    if (rolls_out && !pipeline.rolls_out) continue;
    for (const char* mark : pipeline.marks) {
      const yaml::Node* found = file.child(mark);
      if (!found || found->is_null()) continue;
      return Problem{Problem::Severity::error, found->location(), mark,
                     fmt::format("ROLL's {} pipeline is not available: of ROLL's files those of its RLVR pipeline are "
                                 "read. Nearest: {}",
                                 pipeline.name, pipeline.instead)};
    }
  }
  return std::nullopt;
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
