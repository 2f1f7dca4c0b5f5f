// actor_infer, and how validation samples.
#include "compat/roll/pass.hpp"

namespace hexad::config::roll {
namespace {

const std::string kSampling = "actor_infer.generating_args.";

void set_generator(Pass& p, const yaml::Node& settings, Part& known) {
  const char* const key = "actor_infer.strategy_args.strategy_name";
  const std::string name = p.file.text(key).value_or("vllm");
  const bool engine = name == "vllm" || name == "hf_infer";
  p.set("policy.generation.backend", std::string(engine ? "native" : name), key);
  if (engine || name == "sglang") p.file.given("actor_infer.strategy_args.strategy_config");
  if (name == "sglang") translate_sglang(p, settings, known);
  if (!engine) return;
  p.file.notice(key, fmt::format("'{}' is the native generator here, which sizes itself: strategy_config is not read; "
                                 "hexad: {{policy: {{generation: {{backend: ...}}}}}} names another",
                                 name));
}

void set_sampling(Pass& p) {
  p.move(kSampling + "temperature", "policy.generation.temperature");
  p.move(kSampling + "top_p", "policy.generation.top_p");
  const int64_t top_k = p.file.integer(kSampling + "top_k").value_or(-1);
  p.set("policy.generation.top_k", top_k > 0 ? yaml::Node::Value(top_k) : yaml::Node::Value(), kSampling + "top_k");
  p.move_given(p.file, kSampling + "stop_strings", "policy.generation.stop_strings");
  const char* const group = "num_return_sequences_in_group";
  const std::optional<int64_t> samples = p.file.integer(kSampling + "num_return_sequences");
  if (p.file.given(kSampling + "num_return_sequences") && samples != p.file.integer(group)) {
    p.file.notice(kSampling + "num_return_sequences", fmt::format("not read: {} is the key that says it", group));
  }
}

void check_validation(Pass& p) {
  for (const char* name : {"temperature", "top_p", "top_k"}) {
    const std::string key = std::string("validation.generating_args.") + name;
    if (!p.file.given(key)) continue;
    const std::optional<double> own = p.file.number(key), train = p.file.number(kSampling + name);
    if (own != train) p.file.notice(key, "not applied: validation samples as training does");
  }
  const char* const samples = "validation.generating_args.num_return_sequences";
  if (p.file.given(samples)) p.move(samples, "grpo.val_num_generations_per_prompt");
}

}  // namespace

void translate_generation(Pass& p, const yaml::Node& settings, Part& known) {
  set_generator(p, settings, known);
  set_sampling(p);
  check_validation(p);
  for (const char* role : {"actor_train", "actor_infer"}) {
    const std::string mode = fmt::format("{}.router_replay.mode", role);
    const std::optional<std::string> chosen = p.file.text(mode);
    if (chosen != "R2" && chosen != "R3") continue;
    p.set("policy.router_replay.enabled", true, mode);
    p.set("policy.router_replay.source", std::string(chosen == "R2" ? "logprobs" : "rollout"), mode);
  }
}

// The reference policy is the trained model as it was at the start, in the layout of actor_train.
void translate_reference(Pass& p) {
  const yaml::Node* reference = p.file.given("reference");
  if (!reference) return;
  const char* const model = "reference.model_args.model_name_or_path";
  const std::optional<std::string> own = p.file.text(model);
  const yaml::Node* trained = p.out.find("policy.model_name");
  if (own && trained && trained->is_string() && *own != trained->as_string()) {
    p.file.error(model,
                 fmt::format("got '{}': a reference policy other than the trained model is not available in this "
                             "version; nearest: {}",
                             *own, trained->as_string()));
  }
  p.file.notice("reference", p.file.flag("use_kl_loss") || p.out.find("dpo")
                                 ? "actor_train's ranks compute its log-probs, in their layout; its own is not read"
                                 : "not computed: without use_kl_loss nothing asks for it");
}

}  // namespace hexad::config::roll
