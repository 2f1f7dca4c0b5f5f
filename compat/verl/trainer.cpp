// How long a run is, when it validates and saves, what it leaves, and the machines.
#include <algorithm>

#include "compat/verl/pass.hpp"
#include "lib/base/text.hpp"

namespace hexad::compat::verl {
namespace {

constexpr int64_t kNoEnd = 1'000'000;  // epochs, where steps alone end a run

void translate_length(Pass& p) {
  const int64_t epochs = p.file.count("trainer.total_epochs");
  p.out.set("grpo.max_num_epochs", p.steps ? kNoEnd : epochs, p.steps ? "total_training_steps alone ends the run" : "");
  if (p.steps) p.out.set("grpo.max_num_steps", *p.steps, "trainer.total_training_steps");
}

void translate_saving(Pass& p) {
  const int64_t period = p.file.integer("trainer.save_freq").value_or(-1);
  const std::string folder = p.file.text("trainer.default_local_dir").value_or("checkpoints");
  p.out.set_path("checkpointing.checkpoint_dir", folder);
  p.out.set("checkpointing.metric_name", {}, "the newest are kept, as in verl");
  const std::string keep = "trainer.max_actor_ckpt_to_keep";
  p.out.set("checkpointing.keep_top_k",
            p.file.value(keep) ? yaml::Node::Value(p.file.count(keep)) : yaml::Node::Value());
  if (period > 0) {
    p.out.set("checkpointing.save_period", period, "trainer.save_freq");
  } else {
    p.out.set("checkpointing.enabled", false, "trainer.save_freq -1: never");
  }
  const std::string resume = p.file.text("trainer.resume_mode").value_or("auto");
  if (resume == "disable") p.out.set("checkpointing.resume_if_exists", false);
  if (resume == "resume_path")
    p.out.leave_out("trainer.resume_from_path",
                    "a run goes on from the newest checkpoint of checkpointing.checkpoint_dir");
  for (const char* other : {"trainer.max_critic_ckpt_to_keep", "trainer.resume_from_path"}) p.file.value(other);
}

void translate_reports(Pass& p) {
  const std::string project = p.file.text("trainer.project_name").value_or("verl");
  const std::string name = p.file.text("trainer.experiment_name").value_or("run");
  p.out.set("logger.log_dir", "logs/" + project + "/" + name, "project_name and experiment_name");
  std::vector<std::string> others;
  for (const std::string& to : p.file.texts("trainer.logger")) {
    if (to == "console" || !p.file.given("trainer.logger")) continue;  // nobody has asked for wandb, its default
    const bool is_mlflow = to == "mlflow";
    if (to == "tensorboard") {
      p.out.set("logger.tensorboard_enabled", true);
    } else if (to == "wandb" || to == "swanlab" || to == "trackio" || is_mlflow) {
      p.out.set("logger." + to + "_enabled", true);
      p.out.set("logger." + to + (is_mlflow ? ".experiment_name" : ".project"), project);
      p.out.set("logger." + to + (is_mlflow ? ".run_name" : ".name"), name);
    } else {
      others.push_back(to);
    }
  }
  if (!others.empty())
    p.out.leave_out("trainer.logger", joined(others) + ": what there is instead is in docs/trackers.md");
}

}  // namespace

void translate_trainer(Pass& p) {
  translate_length(p);
  const int64_t period = p.file.integer("trainer.test_freq").value_or(-1);
  const bool validates = !p.file.texts("data.val_files").empty();
  p.out.set("grpo.val_period", validates ? std::max<int64_t>(0, period) : int64_t{0}, "trainer.test_freq; 0: never");
  p.out.set("grpo.val_at_start", validates && p.file.flag("trainer.val_before_train"));
  if (p.file.value("data.val_batch_size")) p.out.set("grpo.val_batch_size", p.file.count("data.val_batch_size"));
  p.out.set("grpo.max_val_samples", {}, "all there are");
  if (p.file.value("data.seed")) p.out.set("grpo.seed", p.file.count("data.seed", 0));
  translate_saving(p);
  translate_reports(p);
  p.out.set("cluster.gpus_per_node", p.file.count("trainer.n_gpus_per_node"));
  p.out.set("cluster.num_nodes", p.file.count("trainer.nnodes"));
}

}  // namespace hexad::compat::verl
