#include "core/config/schema/blocks.hpp"

namespace hexad::config {

void add_checkpointing(Schema& s) {
  s.section("checkpointing", "saving and resuming");
  s.add("checkpointing.enabled", kBool, "true", "save checkpoints, and go on from the latest");
  s.add("checkpointing.resume_if_exists", kBool, "true",
        "false: do not go on from the latest; the checkpoints that are there move to checkpoint_dir/run_<n>, and the "
        "run starts at step 0, as with `hexad train --fresh`");
  s.add("checkpointing.checkpoint_dir", kText, "results/grpo",
        "folder of the step_N folders; results/sft, dpo or rm of those");
  s.add("checkpointing.metric_name", kText | kNull, "val:accuracy",
        "val:<name> or train:<name> by which checkpoints are ranked; null: the newest are kept. Of sft the default "
        "is val:val_loss, of dpo and rm val:validation-default_loss");
  s.add("checkpointing.higher_is_better", kBool, "true",
        "direction of that ranking; false by default of sft, dpo and rm");
  s.add("checkpointing.keep_top_k", kInt | kNull, "3", "checkpoints kept, beside the latest; null: all").at_least(0);
  s.add("checkpointing.save_period", kInt, "10", "save every so many steps").at_least(1);
  s.add("checkpointing.checkpoint_must_save_by", kText | kNull, "null",
        "\"DD:HH:MM:SS\" after the launch of the program: save by then, and end");
  s.add("checkpointing.model_save_format", kText | kNull, "safetensors", "format of the weights")
      .one_of({"safetensors"})
      .not_built({"torch_save"});
  s.add("checkpointing.save_consolidated", kBool, "false", "write one Hugging Face model directory beside the shards")
      .accepted("policy/weights is a Hugging Face model directory already");
  s.add("checkpointing.save_optimizer", kBool, "true", "save the optimizer's state too");
  s.add("checkpointing.checksums", kBool, "true",
        "keep the SHA-256 of each file in training_info.json, and compare when a run resumes; false: sizes alone");
  s.add("checkpointing.resume_from_older", kBool, "true",
        "a newest checkpoint that is damaged is set aside, and the newest intact one taken; false: an error");
  s.add("checkpointing.ft_save_period", kInt | kNull, "null",
        "save every so many steps for restarts, beside save_period")
      .at_least(1);
  s.add("checkpointing.ft_keep_latest_k", kInt | kNull, "null", "of those, how many of the newest are kept")
      .at_least(1);
  s.add("checkpointing.pretrained_checkpoint", kMap | kNull, "null", "another system's checkpoint to start from")
      .open()
      .unavailable("starting from another system's checkpoint", {"null"});
  s.add("checkpointing.is_peft", kBool, "false", "the checkpoint holds adapters").unavailable("LoRA");
  s.add("checkpointing.peft_config", kMap | kNull, "null", "settings of the adapters")
      .open()
      .unavailable("LoRA", {"null"});
  s.add("checkpointing.is_async", kBool, "true",
        "checkpoints reach the disk while training goes on; false: before the next step begins");
  s.add("checkpointing.model_cache_dir", kText | kNull, "null", "cache of converted models")
      .accepted("models are read where they are; nothing is converted");
  s.add("checkpointing.model_repo_id", kText | kNull, "null", "name that Automodel writes into its checkpoints")
      .accepted("checkpoints carry the model's own config.json");
}

}  // namespace hexad::config
