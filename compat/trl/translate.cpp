#include "compat/trl/translate.hpp"

#include <algorithm>

#include "compat/trl/names.hpp"
#include "compat/trl/pass.hpp"
#include "lib/base/error.hpp"

namespace hexad::compat {
namespace {

using trl::Pass;
using trl::Trainer;

struct Mark {
  const char* key;
  std::optional<Trainer> trainer;  // nothing: one that is not translated
};

// Arguments that one trainer alone has. Those of RLOO, KTO and others come first, for they share some with GRPO.
constexpr Mark kMarks[] = {{"normalize_advantages", {}},
                           {"reward_clip_range", {}},
                           {"desirable_weight", {}},
                           {"lmbda", {}},
                           {"response_length", {}},
                           {"num_generations", Trainer::grpo},
                           {"max_completion_length", Trainer::grpo},
                           {"reward_funcs", Trainer::grpo},
                           {"center_rewards_coefficient", Trainer::reward},
                           {"precompute_ref_log_probs", Trainer::dpo},
                           {"loss_weights", Trainer::dpo},
                           {"f_divergence_type", Trainer::dpo},
                           {"label_smoothing", Trainer::dpo},
                           {"beta", Trainer::dpo},
                           {"packing", Trainer::sft},
                           {"dataset_text_field", Trainer::sft},
                           {"assistant_only_loss", Trainer::sft},
                           {"completion_only_loss", Trainer::sft}};

// Settings of logs, processes and loaders: they change nothing that is trained, and have no key here. What a dump says
// of accelerate's and FSDP's own settings is told by `fsdp` and `deepspeed`.
constexpr std::string_view kQuiet[] = {"accelerator_config",
                                       "bf16",
                                       "dataloader_num_workers",
                                       "dataloader_persistent_workers",
                                       "ddp_backend",
                                       "disable_tqdm",
                                       "dataloader_prefetch_factor",
                                       "dataset_num_proc",
                                       "do_eval",
                                       "do_predict",
                                       "do_train",
                                       "env",
                                       "fsdp_config",
                                       "hub_token",
                                       "gradient_checkpointing_kwargs",
                                       "local_rank",
                                       "log_completions",
                                       "log_level",
                                       "log_unique_prompts",
                                       "logging_first_step",
                                       "logging_steps",
                                       "logging_strategy",
                                       "num_completions_to_print",
                                       "pad_to_multiple_of",
                                       "precompute_ref_batch_size",
                                       "precompute_ref_log_probs",
                                       "remove_unused_columns",
                                       "tf32",
                                       "torch_empty_cache_steps"};

Trainer trainer_of(const yaml::Node& args) {
  for (const Mark& mark : kMarks) {
    const yaml::Node* found = args.child(mark.key);
    if (!found) continue;
    if (mark.trainer) return *mark.trainer;
    fail(ErrorKind::config,
         "{}: {}: an argument of another trainer than GRPO, SFT, DPO and reward models, whose "
         "arguments are translated; --trainer says that it is one of them all the same",
         found->location().text(), mark.key);
  }
  fail(ErrorKind::config, "{}: nothing tells whose arguments these are; --trainer grpo, sft, dpo or reward does",
       args.location().text());
}

// Of a dump of GRPOConfig both sizes of a generation are there, and tell how many processes they were worked out for.
int64_t processes_of(Foreign& args, const TrlOptions& options, Trainer trainer) {
  if (trainer != Trainer::grpo || !args.given("generation_batch_size") || !args.given("steps_per_generation"))
    return options.processes.value_or(1);
  const int64_t one = trl::product(args, "steps_per_generation",
                                   {args.count("per_device_train_batch_size"), args.count("steps_per_generation")});
  const int64_t all = args.count("generation_batch_size");
  if (all % one != 0)
    args.refuse("generation_batch_size",
                fmt::format("got {}, wanted per_device_train_batch_size x processes x steps_per_generation, a multiple "
                            "of {}",
                            all, one));
  if (options.processes && *options.processes != all / one)
    args.refuse("generation_batch_size",
                fmt::format("{} is that of {} processes, and --processes says {}", all, all / one, *options.processes));
  return all / one;
}

void tell_unread(Pass& p) {
  for (const std::string& key : p.args.unread(kQuiet)) {
    if (key.starts_with("vllm_") && p.args.value("use_vllm") && !p.args.flag("use_vllm")) continue;
    p.out.leave_out(key, why_left_out(trl_names(), key));
  }
}

}  // namespace

Draft from_trl(yaml::Node file, const TrlOptions& options) {
  const Trainer trainer = options.trainer ? *options.trainer : trainer_of(file);
  Foreign args(std::move(file), trl::defaults_of(trainer));
  Pass pass{args};
  pass.trainer = trainer;
  pass.block = trainer == Trainer::grpo  ? "grpo"
               : trainer == Trainer::sft ? "sft"
               : trainer == Trainer::dpo ? "dpo"
                                         : "rm";
  pass.processes = processes_of(args, options, trainer);
  pass.out.set(pass.block, yaml::Node::Map{});
  if (trainer == Trainer::grpo) pass.out.set("loss_fn", yaml::Node::Map{});
  translate_model(pass);
  if (trainer == Trainer::grpo) {
    translate_generation_batch(pass);
  } else {
    translate_batch(pass);
  }
  translate_steps(pass);
  if (trainer == Trainer::grpo) {
    translate_sampling(pass);
    translate_loss(pass);
  } else {
    translate_supervised(pass);
  }
  translate_optimizer(pass);
  translate_data(pass);
  if (trainer == Trainer::grpo) translate_rewards(pass);
  tell_unread(pass);
  return std::move(pass.out);
}

std::optional<Trainer> trl_trainer(const std::string& name) {
  if (name == "grpo") return Trainer::grpo;
  if (name == "sft") return Trainer::sft;
  if (name == "dpo") return Trainer::dpo;
  if (name == "reward") return Trainer::reward;
  return std::nullopt;
}

}  // namespace hexad::compat
