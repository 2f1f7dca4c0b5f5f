// strategy_config of megatron_train.
#include "compat/roll/pass.hpp"

namespace hexad::config::roll {
namespace {

const std::string kTo = "policy.megatron_cfg.";

// ROLL repairs these without a word.
void set_grid(Pass& p, Part& s) {
  for (const char* same : {"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
                           "expert_model_parallel_size"}) {
    p.move_given(s, same, kTo + same);
  }
  const int64_t tp = s.integer("tensor_model_parallel_size").value_or(1),
                ep = s.integer("expert_model_parallel_size").value_or(1);
  const int64_t etp = s.integer("expert_tensor_parallel_size").value_or(tp);
  const bool own = s.given("expert_tensor_parallel_size") != nullptr;
  if (own || tp > 1)
    p.set(kTo + "expert_tensor_parallel_size", etp, s,
          own ? "expert_tensor_parallel_size" : "tensor_model_parallel_size");
  if (s.text("ckpt_format") == "legacy" && etp != tp) {
    s.error("ckpt_format", fmt::format("legacy does not hold experts of expert_tensor_parallel_size {} under "
                                       "tensor_model_parallel_size {}; nearest: torch_dist",
                                       etp, tp));
  }
  bool shared = s.flag("sequence_parallel");
  if (shared && tp == 1) {
    s.notice("sequence_parallel", "false: there is no tensor parallelism (ROLL does the same)");
    shared = false;
  } else if (!shared && tp > 1 && ep > 1) {
    s.notice("sequence_parallel", "true: tensor and expert parallelism together need it (ROLL does the same)");
    shared = true;
  }
  if (shared || s.given("sequence_parallel")) p.set(kTo + "sequence_parallel", shared, s, "sequence_parallel");
}

void set_pipeline(Pass& p, Part& s) {
  for (const char* same : {"virtual_pipeline_model_parallel_size", "account_for_embedding_in_pipeline_split",
                           "account_for_loss_in_pipeline_split", "num_layers_in_first_pipeline_stage",
                           "num_layers_in_last_pipeline_stage", "pipeline_model_parallel_layout", "cp_comm_type"}) {
    p.move_given(s, same, kTo + same);
  }
  // ROLL's default is true, and without interleaving it means nothing there.
  const bool interleaved = s.integer("virtual_pipeline_model_parallel_size").value_or(1) > 1;
  if (interleaved) p.move_given(s, "overlap_p2p_comm", kTo + "overlap_p2p_comm");
  if (!interleaved && s.given("overlap_p2p_comm") && s.flag("overlap_p2p_comm")) {
    s.notice("overlap_p2p_comm", "not read: the schedule is not interleaved");
  }
}

yaml::Node::List modules_of(const yaml::Node& value) {
  if (value.is_list()) return value.items();
  yaml::Node::List result;
  std::string name;
  for (const char c : value.as_string() + ",") {
    if (c == ',' && !name.empty()) result.emplace_back(name, value.location());
    if (c == ',') name.clear();
    if (c != ',' && c != ' ') name += c;
  }
  return result;
}

void set_recompute(Pass& p, Part& s) {
  const bool experts = s.flag("moe_layer_recompute");
  const yaml::Node* granularity = s.given("recompute_granularity");
  p.file.flag("actor_train.model_args.disable_gradient_checkpointing");
  if (!granularity && !experts) return;
  const std::string from = granularity ? "recompute_granularity" : "moe_layer_recompute";
  const bool full = granularity && s.text("recompute_granularity") == "full";
  p.set(kTo + "activation_checkpointing", true, s, from);
  p.set(kTo + "recompute_granularity", std::string(full ? "full" : "selective"), s, from);
  const yaml::Node* modules = s.given("recompute_modules");
  if (full) {
    const std::string method = s.text("recompute_method").value_or("uniform");
    p.set(kTo + "recompute_method", std::string(method == "recompute" ? "block" : method), s, "recompute_method");
    p.move_given(s, "recompute_num_layers", kTo + "recompute_num_layers");
    return;
  }
  yaml::Node::List names;
  if (modules && (modules->is_string() || modules->is_list())) names = modules_of(*modules);
  const bool listed =
      std::ranges::any_of(names, [](const yaml::Node& n) { return n.is_string() && n.as_string() == "moe"; });
  if (experts && !listed) names.emplace_back(std::string("moe"), s.location("moe_layer_recompute"));
  if (!names.empty()) p.set(kTo + "recompute_modules", std::move(names), s, modules ? "recompute_modules" : from);
}

void set_experts(Pass& p, Part& s) {
  for (const char* same : {"moe_token_dispatcher_type", "moe_grouped_gemm", "moe_shared_expert_overlap",
                           "moe_pad_expert_input_to_capacity", "moe_expert_capacity_factor", "moe_token_drop_policy",
                           "moe_router_load_balancing_type"}) {
    p.move_given(s, same, kTo + same);
  }
  const bool differ =
      p.file.flag("actor_train.use_sequence_packing") || p.file.flag("actor_train.use_dynamic_batching_in_train");
  if (s.text("moe_token_dispatcher_type") == "allgather" && differ) {
    s.notice("moe_token_dispatcher_type", "alltoall: lengths differ between micro-batches (ROLL does the same)");
    p.set(kTo + "moe_token_dispatcher_type", std::string("alltoall"), s, "moe_token_dispatcher_type");
  }
  if (s.text("moe_token_dispatcher_type") == "flex") {
    s.notice("moe_token_dispatcher_type", "alltoall: the same tokens reach the same experts");
    p.set(kTo + "moe_token_dispatcher_type", std::string("alltoall"), s, "moe_token_dispatcher_type");
  }
  p.set(kTo + "moe_router_dtype", s.text("moe_router_dtype").value_or("fp32"), s, "moe_router_dtype");
  p.set(kTo + "freeze_moe_router", false, s, "moe_router_dtype");
  const char* const role = "actor_train.model_args.moe_aux_loss_coef";
  const std::optional<double> own = s.number("moe_aux_loss_coeff"), other = p.file.number(role);
  const double coefficient = own ? *own : other.value_or(0);
  if (coefficient > 0) {
    p.set(kTo + "moe_aux_loss_coeff", coefficient, s, "moe_aux_loss_coeff");
    if (!s.given("moe_router_load_balancing_type")) {
      p.set(kTo + "moe_router_load_balancing_type", std::string("aux_loss"), s, "moe_aux_loss_coeff");
    }
  }
  const bool replay = s.flag("moe_enable_routing_replay");
  if (replay) p.set("policy.router_replay.enabled", true, s, "moe_enable_routing_replay");
}

void set_gradients(Pass& p, Part& s) {
  p.move_given(s, "optimizer", kTo + "optimizer.optimizer");
  p.move_given(s, "use_distributed_optimizer", kTo + "optimizer.use_distributed_optimizer");
  const std::string ddp = kTo + "distributed_data_parallel_config.";
  const bool narrow = p.out.find("policy.precision") && p.out.as_string("policy.precision") == "bfloat16";
  const char* const exact = "accumulate_allreduce_grads_in_fp32";
  p.set(ddp + "grad_reduce_in_fp32", s.given(exact) ? s.flag(exact) : narrow, s, exact);
  p.move(s, "overlap_grad_reduce", ddp + "overlap_grad_reduce");
  p.move_given(s, "ddp_bucket_size", ddp + "bucket_size");
}

}  // namespace

void translate_megatron(Pass& p, Part& s) {
  p.set("policy.dtensor_cfg.enabled", false, "actor_train.strategy_args.strategy_name");
  p.set(kTo + "enabled", true, "actor_train.strategy_args.strategy_name");
  set_grid(p, s);
  set_pipeline(p, s);
  set_recompute(p, s);
  set_experts(p, s);
  set_gradients(p, s);
}

}  // namespace hexad::config::roll
