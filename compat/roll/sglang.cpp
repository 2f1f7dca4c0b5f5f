// actor_infer.strategy_args where its strategy is sglang: servers of the plugin that has this name.
#include "compat/roll/pass.hpp"
#include "compat/roll/schema/schema.hpp"

namespace hexad::config::roll {
namespace {

const std::string kCfg = "policy.generation.sglang_cfg.";

// The type of the weights at a server, where the file says it of actor_infer.
void set_type(Pass& p) {
  const std::string key = "actor_infer.model_args.dtype";
  if (!p.file.given(key)) return;
  const std::string type = p.file.text(key).value_or("bf16");
  p.set(kCfg + "dtype", std::string(type == "fp32" ? "float32" : type == "fp16" ? "float16" : "bfloat16"), key);
}

// ROLL's worker is a server, and has so many GPUs.
void set_sizes(Pass& p, Part& settings) {
  const std::string own = "tensor_parallel_size", worker = "actor_infer.num_gpus_per_worker";
  const yaml::Node* devices = p.file.given(worker);
  if (settings.integer(own)) {
    p.set(kCfg + "tp_size", *settings.integer(own), settings, own);
  } else if (devices && devices->is_int()) {
    p.set(kCfg + "tp_size", devices->as_int(), worker);
  }
  if (settings.given("pipeline_parallel_size")) p.move(settings, "pipeline_parallel_size", kCfg + "pp_size");
}

// Of a server that starts again ROLL's `dummy` would leave random weights: here it loads those in force.
void set_loading(Pass& p, Part& settings) {
  const std::optional<std::string> format = settings.text("load_format");
  if (format && *format != "dummy")
    p.set("policy.generation.sglang_kwargs.load_format", *format, settings, "load_format");
  if (format == "dummy") {
    settings.notice("load_format",
                    "dummy is not carried over: a server loads the weights of the model, and those in force when it "
                    "starts again");
  }
}

// Memory is given back only where training needs it.
void set_offload(Pass& p, Part& settings) {
  const yaml::Node* shared = p.out.find("policy.generation.colocated.enabled");
  const bool apart = shared && shared->is_bool() && !shared->as_bool();
  const bool saves = settings.flag("enable_memory_saver");
  if (apart && !settings.given("enable_memory_saver")) return;
  p.set(kCfg + "sglang_server_config.needs_offload", saves && !apart, settings, "enable_memory_saver");
  if (saves && apart)
    settings.notice("enable_memory_saver", "not carried over: the servers have devices of their own, and never sleep");
}

// What no key here is, SGLang takes itself: ROLL hands it on as it is.
void set_flags(Pass& p, const yaml::Node& all) {
  for (const auto& [name, value] : all.entries()) {
    if (strategy_schema("sglang")->find(name) || value.is_null()) continue;
    p.out.set("policy.generation.sglang_kwargs." + name, value);
    p.file.notice("actor_infer.strategy_args.strategy_config." + name,
                  "handed on to SGLang as it stands (policy.generation.sglang_kwargs)");
  }
}

}  // namespace

bool is_sglang(const yaml::Node& file) {
  const yaml::Node* name = file.find("actor_infer.strategy_args.strategy_name");
  return name && name->is_string() && name->as_string() == "sglang";
}

yaml::Node known_settings(const yaml::Node& settings) {
  yaml::Node known(yaml::Node::Map{}, settings.location());
  for (const auto& [name, value] : settings.entries()) {
    if (strategy_schema("sglang")->find(name)) known.set(name, value);
  }
  return known;
}

void translate_sglang(Pass& p, const yaml::Node& all, Part& settings) {
  set_type(p);
  set_sizes(p, settings);
  set_loading(p, settings);
  set_offload(p, settings);
  p.move(settings, "disable_custom_all_reduce", kCfg + "disable_custom_all_reduce");
  for (const auto& [name, value] : all.entries()) {
    const Key* key = strategy_schema("sglang")->find(name);
    const bool same = key && key->status == Status::effective && !p.out.find(kCfg + name) && name != "load_format" &&
                      name != "enable_memory_saver" && !name.ends_with("_parallel_size");
    if (same) p.move_given(settings, name, kCfg + name);
  }
  set_flags(p, all);
}

}  // namespace hexad::config::roll
