// actor_train.strategy_args: the backend and what ranks share.
#include "compat/roll/pass.hpp"
#include "lib/base/text.hpp"

namespace hexad::config::roll {
namespace {

const char* const kModelArgs = "actor_train.model_args.";

void set_dtensor(Pass& p) {
  const std::string key = std::string(kModelArgs) + "disable_gradient_checkpointing";
  p.set("policy.dtensor_cfg.enabled", true, "actor_train.strategy_args.strategy_name");
  p.set("policy.dtensor_cfg.activation_checkpointing", !p.file.flag(key), key);
}

// Stages 1 and 2 keep whole weights through a step; FSDP2 frees the optimizer's copies either way.
void translate_deepspeed(Pass& p, Part& settings) {
  set_dtensor(p);
  const std::string zero = "zero_optimization.";
  const int64_t stage = settings.integer(zero + "stage").value_or(0);
  if (stage < 3) p.set("policy.dtensor_cfg.reshard_after_forward", false, settings, zero + "stage");
  const bool optimizer = settings.text(zero + "offload_optimizer.device") == "cpu";
  const bool weights = settings.text(zero + "offload_param.device") == "cpu";
  if (optimizer || weights) {
    p.set("policy.dtensor_cfg.cpu_offload", true, settings, zero + (optimizer ? "offload_optimizer" : "offload_param"));
  }
  const std::string precision = p.out.find("policy.precision") ? p.out.as_string("policy.precision") : "";
  for (const auto& [key, type] : {std::pair{"bf16.enabled", "bfloat16"}, std::pair{"fp16.enabled", "float16"}}) {
    if (settings.given(key) && settings.given(key)->is_bool() && settings.flag(key) && precision != type) {
      settings.error(key, fmt::format("true, but actor_train.model_args.dtype makes it {}; nearest: dtype: {}",
                                      precision, type == std::string("bfloat16") ? "bf16" : "fp16"));
    }
  }
  settings.notice(
      zero + "stage",
      fmt::format(
          "ZeRO stage {} is FSDP2 here, {}; buffer sizes of the preset have no meaning for it", stage,
          stage == 3 ? "weights freed behind each block unless memory is left" : "with reshard_after_forward: false"));
}

void translate_fsdp2(Pass& p, Part& settings) {
  set_dtensor(p);
  const int64_t size = settings.integer("fsdp_size").value_or(1);
  if (size > 1 && size < p.ranks) {
    if (p.ranks % size == 0) {
      p.set("policy.dtensor_cfg.dp_replicate_size", p.ranks / size, settings, "fsdp_size");
    } else {
      settings.error("fsdp_size", fmt::format("{} does not divide the {} ranks; nearest: {}", size, p.ranks, p.ranks));
    }
  }
  const std::string context = std::string(kModelArgs) + "ulysses_size";
  p.move_given(p.file, context, "policy.dtensor_cfg.context_parallel_size");
  const int64_t shared = p.file.integer(context).value_or(1);
  if (size > 1 && shared > size) {
    settings.error("fsdp_size",
                   fmt::format("got {}, wanted at least ulysses_size {}; nearest: {}", size, shared, shared));
  }
  p.move_given(settings, "ep_size", "policy.dtensor_cfg.expert_parallel_size");
  p.move_given(settings, "reshard_after_forward", "policy.dtensor_cfg.reshard_after_forward");
  p.move_given(settings, "offload_policy", "policy.dtensor_cfg.cpu_offload");
  const std::optional<std::string> type = settings.text("param_dtype");
  const std::string precision = p.out.find("policy.precision") ? p.out.as_string("policy.precision") : "";
  const bool agrees = !type || precision.starts_with(type->substr(0, 1));
  if (!agrees) {
    settings.notice("param_dtype", fmt::format("not read: actor_train.model_args.dtype makes it {}", precision));
  }
}

}  // namespace

void translate_strategy(Pass& p, Part& settings, const std::string& name) {
  if (name == "megatron_train") return translate_megatron(p, settings);
  if (name == "deepspeed_train") return translate_deepspeed(p, settings);
  if (name == "fsdp2_train") return translate_fsdp2(p, settings);
  const std::vector<std::string> names = {"megatron_train", "fsdp2_train", "deepspeed_train"};
  p.file.error("actor_train.strategy_args.strategy_name",
               fmt::format("got '{}', wanted one of {}{}", name, joined(names), did_you_mean(name, names)));
}

}  // namespace hexad::config::roll
