// The model, the optimizer with its schedule, how long a run is and what it leaves.
#include <algorithm>
#include <cmath>

#include "compat/draft/schedule.hpp"
#include "compat/trl/pass.hpp"
#include "lib/base/text.hpp"

namespace hexad::compat::trl {
namespace {

constexpr int64_t kGpusOfNode = 8;
constexpr int64_t kNoEnd = 1'000'000;  // epochs, where steps alone end a run

void translate_precision(Pass& p) {
  const std::optional<std::string> type =
      p.args.given("torch_dtype") ? p.args.text("torch_dtype") : p.args.text("dtype");
  const bool fp16 = p.args.flag("fp16"), bf16 = p.args.value("bf16") ? p.args.flag("bf16") : !fp16;
  const std::string said = bf16 ? "bfloat16" : fp16 ? "float16" : "float32";
  const bool half = type && (*type == "bfloat16" || *type == "float16");
  p.out.set("policy.precision", said == "float32" && half ? *type : said,
            bf16 && !p.args.given("bf16") ? "TRL's default: bf16" : "");
}

void translate_devices(Pass& p) {
  const bool nodes = p.processes > kGpusOfNode && p.processes % kGpusOfNode == 0;
  p.out.set("cluster.gpus_per_node", nodes ? kGpusOfNode : p.processes, "processes");
  if (nodes) p.out.set("cluster.num_nodes", p.processes / kGpusOfNode, fmt::format("nodes of {} GPUs", kGpusOfNode));
}

// The names of PyTorch's optimizers that transformers has.
void translate_optimizer_name(Pass& p) {
  const std::string name = p.args.text("optim").value_or("adamw_torch");
  std::string ours = "torch.optim.AdamW";
  if (name == "sgd") ours = "torch.optim.SGD";
  if (!name.starts_with("adamw_torch") && name != "sgd" && name != "adamw_hf" && name != "adamw_apex_fused")
    p.out.leave_out("optim", fmt::format("'{}' is not available; written as AdamW", name));
  p.out.set("policy.optimizer.name", ours);
}

// Steps that a rise takes, in TRL's optimizer steps; -1 where it is a share of an unknown whole.
double warmup_of(Pass& p) {
  const double ratio = p.args.number("warmup_ratio").value_or(0), steps = p.args.number("warmup_steps").value_or(0);
  const double share = steps > 0 && steps < 1 ? steps : steps == 0 ? ratio : 0;
  if (share <= 0) return std::max(0.0, steps);
  const int64_t whole = p.args.integer("max_steps").value_or(-1);
  return whole > 0 ? std::ceil(share * static_cast<double>(whole)) : -1;
}

// What transformers calls it; nothing where it has no counterpart, which is said.
std::optional<Schedule> shape_of(Pass& p, double rate) {
  const std::string name = p.args.text("lr_scheduler_type").value_or("linear");
  Schedule schedule{.rate = rate};
  if (name == "linear") schedule.shape = Schedule::Shape::linear;
  if (name == "cosine" || name == "cosine_with_min_lr") schedule.shape = Schedule::Shape::cosine;
  if (name == "cosine_with_min_lr") {
    const std::optional<double> least = p.args.number("lr_scheduler_kwargs.min_lr");
    schedule.floor = p.args.number("lr_scheduler_kwargs.min_lr_rate").value_or(least && rate > 0 ? *least / rate : 0);
  }
  if (schedule.shape != Schedule::Shape::constant || name == "constant" || name == "constant_with_warmup")
    return schedule;
  p.out.leave_out("lr_scheduler_type", fmt::format("'{}': policy.scheduler takes PyTorch's classes; written as a "
                                                   "constant rate",
                                                   name));
  return std::nullopt;
}

void translate_schedule(Pass& p, double rate) {
  std::optional<Schedule> schedule = shape_of(p, rate);
  const double warmup = warmup_of(p);
  const std::string name = p.args.text("lr_scheduler_type").value_or("linear");
  if (!schedule) return;
  if (name == "constant") return;  // transformers ignores the warm-up of this one
  if (warmup < 0) p.out.leave_out("warmup_ratio", "a share of the run, whose length max_steps would say");
  if (warmup > 0) schedule->warmup = p.steps_of(warmup);
  if (schedule->shape != Schedule::Shape::constant && !p.steps) {
    p.out.leave_out("lr_scheduler_type",
                    fmt::format("{}: the fall to the end needs the length of the run; put max_steps=N behind the file. "
                                "Written as a constant rate",
                                name));
    schedule->shape = Schedule::Shape::constant;
  }
  if (schedule->shape != Schedule::Shape::constant && *p.steps <= schedule->warmup)
    schedule->shape = Schedule::Shape::constant;  // the run ends within the rise
  schedule->total = p.steps.value_or(0);
  const yaml::Node node = scheduler_of(*schedule);
  p.out.put("policy.scheduler", &node,
            fmt::format("lr_scheduler_type {} with a warm-up of {:g} optimizer steps; here in steps", name,
                        std::max(0.0, warmup)));
}

void translate_length(Pass& p) {
  const int64_t most = p.args.integer("max_steps").value_or(-1);
  if (most > 0) p.steps = p.steps_of(static_cast<double>(most));
  const double epochs = p.args.number("num_train_epochs").value_or(3);
  if (!(epochs > 0 && epochs <= static_cast<double>(kNoEnd)) && most <= 0)
    p.args.refuse("num_train_epochs", fmt::format("got {:g}, wanted a number above 0, at most {}", epochs, kNoEnd));
  if (most <= 0 && std::ceil(epochs) != epochs)
    p.out.leave_out("num_train_epochs", fmt::format("{:g}: epochs are whole ones here", epochs));
  p.out.set(p.block + ".max_num_epochs", most > 0 ? kNoEnd : static_cast<int64_t>(std::ceil(epochs)),
            most > 0 ? "max_steps alone ends the run" : "");
  if (p.steps)
    p.out.set(p.block + ".max_num_steps", *p.steps,
              fmt::format("max_steps {}, {:g} of them in a step", most, p.optimizer_steps));
  else if (p.trainer != Trainer::grpo)
    p.out.set(p.block + ".max_num_steps", int64_t{-1}, "as many as the epochs hold");
}

void translate_validation(Pass& p) {
  const std::string when = p.args.text("eval_strategy").value_or("no");
  for (const char* size : {"per_device_eval_batch_size", "eval_steps", "eval_accumulation_steps"}) p.args.value(size);
  p.out.set(p.block + ".val_at_start", when != "no" && p.args.flag("eval_on_start"));
  if (when == "no") return p.out.set(p.block + ".val_period", int64_t{0});
  const std::string key = p.args.given("eval_steps") ? "eval_steps" : "logging_steps";
  if (when != "steps") p.out.leave_out("eval_strategy", when + ": validation is every so many steps; at the end here");
  const std::optional<int64_t> period = when == "steps" ? p.period(key) : std::nullopt;
  p.out.set(p.block + ".val_period", period.value_or(0),
            period ? fmt::format("{}, {:g} of them in a step", key, p.optimizer_steps) : "");
  if (!period) p.out.set(p.block + ".val_at_end", true);
  if (p.trainer == Trainer::grpo)
    p.out.put("grpo.val_num_generations_per_prompt",
              p.args.value(p.args.value("num_generations_eval") ? "num_generations_eval" : "num_generations"));
}

void translate_saving(Pass& p, const std::string& folder) {
  const std::string when = p.args.text("save_strategy").value_or("steps");
  p.out.set_path("checkpointing.checkpoint_dir", folder);
  p.out.set("checkpointing.metric_name", {}, "the newest are kept, as in TRL");
  p.out.set("checkpointing.keep_top_k", p.args.value("save_total_limit")
                                            ? yaml::Node::Value(p.args.count("save_total_limit"))
                                            : yaml::Node::Value());
  if (p.args.flag("save_only_model")) p.out.set("checkpointing.save_optimizer", false);
  if (p.args.flag("load_best_model_at_end"))
    p.out.leave_out("load_best_model_at_end",
                    "checkpointing.metric_name keeps the best by a metric of this engine's (val:accuracy)");
  for (const char* best : {"metric_for_best_model", "greater_is_better"}) p.args.value(best);
  if (when == "no") return p.out.set("checkpointing.enabled", false);
  if (when != "steps") p.out.leave_out("save_strategy", when + ": saves are every so many steps");
  if (const auto period = p.period("save_steps"))
    p.out.set("checkpointing.save_period", *period,
              fmt::format("save_steps, {:g} of them in a step", p.optimizer_steps));
}

void translate_reports(Pass& p, const std::string& folder) {
  p.out.set_path("logger.log_dir", p.args.text("logging_dir").value_or(folder + "/logs"));
  std::vector<std::string> others;
  for (const std::string& name : p.args.texts("report_to")) {
    if (name == "tensorboard" || name == "all")
      p.out.set("logger.tensorboard_enabled", true);
    else if (name == "wandb" || name == "mlflow" || name == "swanlab" || name == "trackio")
      p.out.set("logger." + name + "_enabled", true);
    else if (name != "none")
      others.push_back(name);
  }
  if (!others.empty()) p.out.leave_out("report_to", joined(others) + ": what there is instead is in docs/trackers.md");
}

}  // namespace

std::optional<int64_t> Pass::period(const std::string& key) {
  const double steps_of_trl = args.number(key).value_or(0);
  if (steps_of_trl <= 0) args.refuse(key, fmt::format("got {:g}, wanted a number above 0", steps_of_trl));
  if (steps_of_trl >= 1) return steps_of(steps_of_trl);
  const int64_t whole = args.integer("max_steps").value_or(-1);
  if (whole > 0) return steps_of(std::ceil(steps_of_trl * static_cast<double>(whole)));
  out.leave_out(key, fmt::format("{:g} of the run, whose length max_steps would say", steps_of_trl));
  return std::nullopt;
}

void translate_model(Pass& p) {
  const std::optional<std::string> name = p.args.text("model_name_or_path");
  if (!name)
    p.args.refuse("model_name_or_path",
                  "is missing, for to_dict() does not hold the model; put model_name_or_path=NAME behind the file");
  p.out.set_path("policy.model_name", *name);
  translate_precision(p);
  const bool again = p.args.flag("gradient_checkpointing");
  p.out.set("policy.dtensor_cfg.enabled", true);
  p.out.set("policy.dtensor_cfg.activation_checkpointing", again, "gradient_checkpointing");
  translate_devices(p);
}

void translate_optimizer(Pass& p) {
  const double rate = p.args.number("learning_rate").value_or(0);
  translate_optimizer_name(p);
  p.out.set("policy.optimizer.kwargs.lr", rate);
  p.out.set("policy.optimizer.kwargs.weight_decay", p.args.number("weight_decay").value_or(0));
  const double first = p.args.number("adam_beta1").value_or(0.9), second = p.args.number("adam_beta2").value_or(0.999);
  p.out.set("policy.optimizer.kwargs.betas", yaml::Node::List{yaml::Node(first), yaml::Node(second)});
  p.out.set("policy.optimizer.kwargs.eps", p.args.number("adam_epsilon").value_or(1e-8));
  const double norm = p.args.number("max_grad_norm").value_or(0);
  p.out.set("policy.max_grad_norm", norm > 0 ? yaml::Node::Value(norm) : yaml::Node::Value());
  translate_schedule(p, rate);
}

void translate_steps(Pass& p) {
  translate_length(p);
  p.out.set(p.block + ".seed", p.args.count("seed", 0));
  translate_validation(p);
  const std::string folder = p.args.text("output_dir").value_or("trainer_output");
  translate_saving(p, folder);
  translate_reports(p, folder);
}

}  // namespace hexad::compat::trl
