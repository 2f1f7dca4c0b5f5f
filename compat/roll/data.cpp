// Prompts, and the template that they go through.
#include "compat/roll/pass.hpp"

namespace hexad::config::roll {
namespace {

// Keys of Hexad's datasets that stand among data_args.
bool own_keys(Pass& p, const std::string& at, yaml::Node& dataset) {
  if (!p.file.given(at + "dataset_name")) return false;
  for (const std::string& path : config::core_schema().children("data.train")) {
    const std::string name = path.substr(path.rfind('.') + 1);
    if (const yaml::Node* value = p.file.given(at + name)) dataset.set(name, *value);
  }
  return true;
}

void set_rows(Pass& p, const std::string& role, const std::string& path, const std::string& environment) {
  const std::string at = role + ".data_args.";
  const yaml::Location place = p.file.location(at + "file_name");
  yaml::Node base(yaml::Node::Map{}, place);
  const auto finished = [&](yaml::Node dataset) {
    if (!dataset.child("env_name")) dataset.set("env_name", yaml::Node(environment, place));
    if (!dataset.child("processor")) dataset.set("processor", yaml::Node(std::string("math_hf_data_processor"), place));
    return dataset;
  };
  if (own_keys(p, at, base)) return p.out.set(path, finished(std::move(base)));
  const yaml::Node* files = p.file.given(at + "file_name");
  if (!files || (files->is_list() && files->items().empty())) {
    if (role == "actor_train") p.file.error(at + "file_name", "is missing: name the JSONL files of the prompts");
    return;
  }
  base.set("dataset_name", yaml::Node(std::string("ResponseDataset"), place));
  base.set("data_path", yaml::Node());
  base.set("input_key", yaml::Node(p.file.text(at + "prompt").value_or("prompt"), p.file.location(at + "prompt")));
  base.set("output_key",
           yaml::Node(p.file.text(at + "response").value_or("ground_truth"), p.file.location(at + "response")));
  yaml::Node::List datasets;
  const yaml::Node::List one = {*files};
  for (const yaml::Node& file : files->is_list() ? files->items() : one) {
    yaml::Node dataset = base;
    dataset.set("data_path", file);
    datasets.push_back(finished(std::move(dataset)));
  }
  p.out.set(path, yaml::Node(std::move(datasets), place));
}

}  // namespace

void translate_template(Pass& p) {
  p.set("policy.tokenizer.chat_template", std::string("default"), "actor_train.data_args.template");
  for (const char* key : {"global_template", "actor_train.data_args.template"}) {
    const std::optional<std::string> name = p.file.text(key);
    if (p.file.given(key) && name && *name != "native") {
      p.file.notice(key, fmt::format("'{}': the chat template of the model's own tokenizer is used", *name));
    }
  }
  p.file.text("actor_infer.data_args.template"), p.file.text("validation.data_args.template");
}

void translate_data(Pass& p) {
  const std::optional<std::string> environment = translate_rewards(p);
  set_rows(p, "actor_train", "data.train", environment.value_or("math"));
  if (p.file.section("validation")) set_rows(p, "validation", "data.validation", environment.value_or("math"));
  for (const char* type : {"actor_train.data_args.dataset_type", "validation.data_args.dataset_type"})
    p.file.value(type);
  translate_template(p);
}

}  // namespace hexad::config::roll
