// Where weights lie, and how they are trained.
#include "compat/draft/schedule.hpp"
#include "compat/verl/pass.hpp"

namespace hexad::compat::verl {
namespace {

constexpr const char* kMegatronSizes[] = {"tensor_model_parallel_size",  "pipeline_model_parallel_size",
                                          "context_parallel_size",       "expert_model_parallel_size",
                                          "expert_tensor_parallel_size", "virtual_pipeline_model_parallel_size"};

void translate_megatron(Pass& p) {
  const std::string from = kActor + "megatron.", to = "policy.megatron_cfg.";
  p.out.set("policy.dtensor_cfg.enabled", false);
  p.out.set(to + "enabled", true);
  for (const char* size : kMegatronSizes) {
    if (p.file.value(from + size)) p.out.set(to + size, p.file.count(from + size));
  }
  const int64_t tensor = p.file.count(from + "tensor_model_parallel_size");
  const int64_t context = p.file.count(from + "context_parallel_size");
  const bool shared = tensor > 1 && p.file.flag(from + "sequence_parallel");
  p.out.set(to + "sequence_parallel", shared);
  p.length_unit = (shared ? tensor : 1) * (context > 1 ? 2 * context : 1);
  if (p.length_unit > 1)
    p.out.set("policy.make_sequence_length_divisible_by", p.length_unit, "what tensor and context ranks share");
  const std::string recompute = from + "override_transformer_config.";
  const std::optional<std::string> granularity = p.file.text(recompute + "recompute_granularity");
  p.out.set(to + "activation_checkpointing",
            granularity.has_value() || p.file.flag(kModel + "enable_gradient_checkpointing"));
  if (granularity) p.out.set(to + "recompute_granularity", *granularity);
  for (const char* key : {"recompute_method", "recompute_num_layers"})
    p.out.put(to + key, p.file.value(recompute + key));
  if (granularity == "selective") p.out.put(to + "recompute_modules", p.file.value(recompute + "recompute_modules"));
  if (p.file.flag(from + "optimizer_offload")) {
    p.out.set(to + "optimizer.optimizer_cpu_offload", true, "optimizer_offload");
    p.out.set(to + "optimizer.optimizer_offload_fraction", 1.0);
  }
  for (const char* key : {"param_offload", "grad_offload"}) {
    if (p.file.flag(from + key)) p.out.leave_out(from + key, "weights and gradients stay on the GPU");
  }
}

void translate_fsdp(Pass& p) {
  const std::string from = kActor + "fsdp_config.", to = "policy.dtensor_cfg.";
  p.out.set(to + "enabled", true);
  p.out.set(to + "activation_checkpointing", p.file.flag(kModel + "enable_gradient_checkpointing"));
  p.out.put(to + "reshard_after_forward", p.file.value(from + "reshard_after_forward"));
  const int64_t context = p.file.count(kActor + "ulysses_sequence_parallel_size");
  if (context > 1) {
    p.out.set(to + "context_parallel_size", context, "ulysses_sequence_parallel_size");
    p.out.set(to + "cp_comm_type", std::string("a2a"), "as Ulysses exchanges heads");
  }
  const int64_t shards = p.file.integer(from + "fsdp_size").value_or(-1);
  if (shards > 0 && p.gpus % shards == 0 && shards < p.gpus)
    p.out.set(to + "dp_replicate_size", p.gpus / shards, fmt::format("{} GPUs / fsdp_size {}", p.gpus, shards));
  else if (shards > 0 && shards != p.gpus)
    p.out.leave_out(from + "fsdp_size", fmt::format("{} does not divide the {} GPUs", shards, p.gpus));
  const bool weights = p.file.flag(from + "param_offload"), states = p.file.flag(from + "optimizer_offload");
  if (weights && states) p.out.set(to + "cpu_offload", true, "param_offload and optimizer_offload");
  if (weights != states)
    p.out.leave_out(from + (weights ? "param_offload" : "optimizer_offload"),
                    "weights and optimizer are kept in host memory together (policy.dtensor_cfg.cpu_offload)");
  if (p.file.flag(from + "offload_policy")) p.out.set(to + "cpu_offload", true, "offload_policy");
}

void translate_precision(Pass& p) {
  const std::string key = kActor + (p.megatron ? "megatron.dtype" : "fsdp_config.dtype");
  const std::string name = p.file.text(key).value_or("bfloat16");
  const bool half = name == "float16" || name == "fp16", full = name == "float32" || name == "fp32";
  if (!half && !full && name != "bfloat16" && name != "bf16")
    p.file.refuse(key, fmt::format("got '{}', wanted bfloat16, float16 or float32", name));
  p.out.set("policy.precision", std::string(half ? "float16" : full ? "float32" : "bfloat16"));
}

void put_schedule(Pass& p, double rate) {
  const std::string at = kActor + "optim.";
  const std::string key = at + (p.megatron ? "lr_decay_style" : "lr_scheduler_type");
  const std::string style = p.file.given(at + "warmup_style") ? p.file.text(at + "warmup_style").value_or("constant")
                                                              : p.file.text(key).value_or("constant");
  Schedule schedule{.rate = rate};
  if (style == "cosine") schedule.shape = Schedule::Shape::cosine;
  if (style == "linear") schedule.shape = Schedule::Shape::linear;
  if (style != "constant" && style != "cosine" && style != "linear")
    p.out.leave_out(key, fmt::format("'{}' is not translated; written as constant", style));
  const double floor = p.file.number(at + "min_lr").value_or(0);
  schedule.floor = p.megatron && rate > 0 ? floor / rate : p.file.number(at + "min_lr_ratio").value_or(0);
  const double share = p.file.number(at + "lr_warmup_steps_ratio").value_or(0);
  const int64_t given = p.file.integer(at + "lr_warmup_steps").value_or(-1);
  if (given > 0) schedule.warmup = given;
  if (given <= 0 && share > 0 && p.steps)
    schedule.warmup = static_cast<int64_t>(std::min(share, 1.0) * static_cast<double>(*p.steps));
  if (given <= 0 && share > 0 && !p.steps)
    p.out.leave_out(at + "lr_warmup_steps_ratio",
                    "a share of the run, whose length trainer.total_training_steps would say");
  if (schedule.shape != Schedule::Shape::constant && !p.steps)
    p.out.leave_out(key, style +
                             ": needs the length of the run; put trainer.total_training_steps=N behind the file. "
                             "Written as a constant rate");
  if (!p.steps || *p.steps <= schedule.warmup) schedule.shape = Schedule::Shape::constant;
  schedule.total = p.steps.value_or(0);
  const yaml::Node node = scheduler_of(schedule);
  p.out.put("policy.scheduler", &node, "stepped once a rollout, as in verl");
}

}  // namespace

void translate_strategy(Pass& p) {
  const std::string key = kActor + "strategy", name = p.file.text(key).value_or("fsdp");
  if (!p.megatron && name != "fsdp" && name != "fsdp2")
    p.out.leave_out(key, fmt::format("'{}' is not available; written as fsdp2", name));
  p.out.set_path("policy.model_name", p.file.wanted_text(kModel + "path"));
  if (const auto tokenizer = p.file.text(kModel + "tokenizer_path"))
    p.out.set_path("policy.tokenizer.name", *tokenizer);
  if (const auto shape = p.file.text(kModel + "custom_chat_template"))
    p.out.set("policy.tokenizer.chat_template", *shape);
  const yaml::Node* more = p.file.value(kModel + "override_config");
  if (more && more->is_map() && !more->entries().empty() && !more->child("model_config"))
    p.out.put("policy.hf_config_overrides", more);
  for (const char* rank : {"lora_rank", "lora.rank"}) {
    if (p.file.integer(kModel + rank).value_or(0) > 0)
      p.out.leave_out(kModel + rank, "low-rank adapters are not available; all weights are trained");
  }
  translate_precision(p);
  if (p.megatron) {
    translate_megatron(p);
  } else {
    translate_fsdp(p);
  }
}

void translate_optimizer(Pass& p) {
  const std::string at = kActor + "optim.", to = "policy.optimizer.kwargs.";
  const double rate = p.file.number(at + "lr").value_or(1e-6);
  p.out.set("policy.optimizer.name", std::string("torch.optim.AdamW"));
  p.out.set(to + "lr", rate);
  p.out.put(to + "weight_decay", p.file.value(at + "weight_decay"));
  p.out.put(to + "betas", p.file.value(at + "betas"));
  const std::string name = p.file.text(at + "optimizer").value_or("AdamW");
  if (name != "AdamW" && name != "adam")
    p.out.leave_out(at + "optimizer", fmt::format("'{}' is not translated; written as AdamW", name));
  for (const char* other : {"optimizer_impl", "num_cycles", "clip_grad", "total_training_steps", "lr_decay_steps"})
    p.file.value(at + other);
  const std::string clip = p.megatron ? at + "clip_grad" : kActor + "grad_clip";
  const double norm = p.file.number(clip).value_or(0);
  p.out.set("policy.max_grad_norm", norm > 0 ? yaml::Node::Value(norm) : yaml::Node::Value(), clip);
  p.file.value(kActor + "grad_clip");
  put_schedule(p, rate);
}

}  // namespace hexad::compat::verl
