// The optimizer, its schedule and its batches.
#include <numeric>

#include "compat/roll/pass.hpp"

namespace hexad::config::roll {
namespace {

const std::string kArgs = "actor_train.training_args.";

yaml::Node named(const char* name, yaml::Node::Map kwargs, const yaml::Location& place) {
  yaml::Node::Map map;
  map.emplace_back("name", yaml::Node(std::string("torch.optim.lr_scheduler.") + name, place));
  map.emplace_back("kwargs", yaml::Node(std::move(kwargs), place));
  return yaml::Node(std::move(map), place);
}

void set_optimizer(Pass& p) {
  p.set("policy.optimizer.name", std::string("torch.optim.AdamW"), kArgs + "learning_rate");
  p.move(kArgs + "learning_rate", "policy.optimizer.kwargs.lr");
  p.move(kArgs + "weight_decay", "policy.optimizer.kwargs.weight_decay");
  yaml::Node::List betas;
  for (const char* beta : {"adam_beta1", "adam_beta2"}) {
    betas.emplace_back(p.file.number(kArgs + beta).value_or(0.9), p.file.location(kArgs + beta));
  }
  p.set("policy.optimizer.kwargs.betas", std::move(betas), kArgs + "adam_beta1");
  p.move(kArgs + "adam_epsilon", "policy.optimizer.kwargs.eps");
}

// Megatron's scheduler rises to every form of decay, transformers' to all but `constant`.
bool warms_up(const Pass& p, const std::string& type) {
  const yaml::Node* megatron = p.out.find("policy.megatron_cfg.enabled");
  return type != "constant" || (megatron && megatron->is_bool() && megatron->as_bool());
}

// transformers' schedules; a step of them is a rollout here.
void set_schedule(Pass& p) {
  const std::string key = kArgs + "lr_scheduler_type", type = p.file.text(key).value_or("linear");
  const int64_t steps = p.file.integer("max_steps").value_or(500);
  int64_t warmup = p.file.integer(kArgs + "warmup_steps").value_or(0);
  const double ratio = p.file.number(kArgs + "warmup_ratio").value_or(0);
  if (warmup == 0 && ratio > 0 && ratio <= 1)
    warmup = static_cast<int64_t>(std::ceil(ratio * static_cast<double>(steps)));
  const bool constant = type == "constant" || type == "constant_with_warmup";
  if (constant && warmup > 0 && !warms_up(p, type)) {
    p.file.notice(kArgs + (p.file.given(kArgs + "warmup_steps") ? "warmup_steps" : "warmup_ratio"),
                  "not read: constant has no warm-up (as in ROLL)");
    warmup = 0;
  }
  if (constant && warmup == 0) return p.set("policy.scheduler", {}, key);
  if (warmup >= steps) {
    return p.file.error(kArgs + "warmup_steps", fmt::format("got {}, wanted fewer than max_steps {}; nearest: {}",
                                                            warmup, steps, std::max<int64_t>(steps - 1, 0)));
  }
  const yaml::Location place = p.file.location(key);
  const auto number = [&](double value) { return yaml::Node(value, place); };
  const auto integer = [&](int64_t value) { return yaml::Node(value, place); };
  yaml::Node decay =
      type == "linear"
          ? named("LinearLR",
                  {{"start_factor", number(1)}, {"end_factor", number(0)}, {"total_iters", integer(steps - warmup)}},
                  place)
      : type == "cosine"
          ? named("CosineAnnealingLR", {{"T_max", integer(steps - warmup)}, {"eta_min", number(0)}}, place)
          : named("ConstantLR", {{"factor", number(1)}, {"total_iters", integer(10'000'000'000)}}, place);
  if (warmup == 0) return p.set("policy.scheduler", decay.value(), key);
  yaml::Node::Map milestones;
  milestones.emplace_back("milestones", yaml::Node(yaml::Node::List{integer(warmup)}, place));
  p.set("policy.scheduler",
        yaml::Node::List{
            named("LinearLR",
                  {{"start_factor", number(1e-8)}, {"end_factor", number(1)}, {"total_iters", integer(warmup)}}, place),
            std::move(decay), yaml::Node(std::move(milestones), place)},
        key);
}

int64_t model_ranks(Pass& p) {
  int64_t ranks = 1;
  for (const char* size : {"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"}) {
    const yaml::Node* value = p.out.find(std::string("policy.megatron_cfg.") + size);
    if (value && value->is_int() && value->as_int() > 0 && value->as_int() <= 1'000'000) ranks *= value->as_int();
    if (ranks > 1'000'000) return 1;
  }
  const yaml::Node* context = p.out.find("policy.dtensor_cfg.context_parallel_size");
  return context && context->is_int() && context->as_int() > 0 ? context->as_int() : ranks;
}

// ROLL gives each data-parallel rank the same number of prompts.
void check_prompts(Pass& p) {
  const int64_t data_parallel = p.data_parallel;
  const std::optional<int64_t> prompts = p.file.integer("rollout_batch_size");
  if (!prompts || !p.out.find("policy.megatron_cfg.enabled") || *prompts % data_parallel == 0) return;
  const int64_t below = *prompts / data_parallel * data_parallel;
  p.file.error("rollout_batch_size",
               fmt::format("got {}, wanted a multiple of the {} data-parallel ranks; nearest: {}{}", *prompts,
                           data_parallel, below > 0 ? fmt::format("{} or ", below) : "", below + data_parallel));
}

}  // namespace

void translate_training(Pass& p) {
  set_optimizer(p);
  set_schedule(p);
  const int64_t model = model_ranks(p);
  p.data_parallel = p.ranks % model == 0 ? p.ranks / model : 1;
  const int64_t micro = p.file.integer(kArgs + "per_device_train_batch_size").value_or(8);
  const int64_t accumulated = p.file.integer(kArgs + "gradient_accumulation_steps").value_or(1);
  p.set("policy.train_micro_batch_size", micro, kArgs + "per_device_train_batch_size");
  int64_t global = 0;
  if (__builtin_mul_overflow(micro, accumulated, &global) || __builtin_mul_overflow(global, p.data_parallel, &global))
    return;
  p.set("policy.train_global_batch_size", global, kArgs + "gradient_accumulation_steps");
}

void translate_samples(Pass& p) {
  check_prompts(p);
  // ROLL's last log-prob batch of a rank may be smaller; here they are equal.
  const char* const key = "actor_train.infer_batch_size";
  const int64_t asked = std::clamp<int64_t>(p.file.integer(key).value_or(16), 1, 1'000'000);
  const int64_t prompts = p.file.integer("rollout_batch_size").value_or(128);
  int64_t samples = 0;
  if (__builtin_mul_overflow(prompts, p.file.integer("num_return_sequences_in_group").value_or(1), &samples)) return;
  const int64_t per_rank = std::max<int64_t>(samples / p.data_parallel, 1);
  int64_t size = std::min(asked, per_rank);
  while (per_rank % size != 0) --size;
  p.set("policy.logprob_batch_size", size, key);
}

}  // namespace hexad::config::roll
