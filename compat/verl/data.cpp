// Rows and rewards. verl reads Parquet files of {prompt: [messages], reward_model: {ground_truth: ...}, data_source}.
#include "compat/verl/pass.hpp"

namespace hexad::compat::verl {
namespace {

using yaml::Node;

Node file_of(Pass& p, const std::string& path, const std::string& samples) {
  Node set(Node::Map{});
  set.set("dataset_name", Node(std::string("openai_format")));
  set.set("chat_key", Node(p.file.text("data.prompt_key").value_or("prompt")));
  set.set("output_key", Node(std::string("reward_model.ground_truth")));
  set.set("data_path", path_node(path));
  if (const auto most = p.file.integer("data." + samples); most && *most > 0) set.set("max_samples", Node(*most));
  return set;
}

void put_files(Pass& p, const std::string& key, const std::string& to, const std::string& samples) {
  Node::List sets;
  for (const std::string& path : p.file.texts(key)) sets.push_back(file_of(p, path, samples));
  p.file.value("data." + samples);
  if (sets.empty()) return;
  const Node value = sets.size() == 1 ? sets.front() : Node(std::move(sets));
  p.out.put(to, &value, key);
}

void translate_rewards(Pass& p) {
  const std::optional<std::string> path = p.file.text("custom_reward_function.path");
  const std::optional<std::string> name = p.file.text("custom_reward_function.name");
  const std::string env = path ? "my_reward" : "math";
  if (!path)
    p.out.leave_out("data.reward_fn_key",
                    "verl chooses a reward by each row's data_source; written as mathematics for all of them");
  p.file.value("data.reward_fn_key");
  const std::string manager = p.file.text("reward_model.reward_manager").value_or("naive");
  if (manager != "naive" && manager != "dapo")
    p.out.leave_out("reward_model.reward_manager", fmt::format("'{}': an environment scores each response", manager));
  if (p.file.flag("reward_model.enable"))
    p.out.leave_out("reward_model.enable",
                    "a reward model is no reward here; one behind a server is (docs/plugins/http_reward.md)");
  p.out.set("data.default.env_name", env);
  p.out.set("env." + env, Node::Map{});
  if (path) p.out.set("env.my_reward.python", *path + ":" + name.value_or("compute_score"));
}

}  // namespace

void translate_data(Pass& p) {
  p.out.set("data.shuffle", p.file.flag("data.shuffle"));
  put_files(p, "data.train_files", "data.train", "train_max_samples");
  put_files(p, "data.val_files", "data.validation", "val_max_samples");
  if (const yaml::Node* more = p.file.value("data.apply_chat_template_kwargs");
      more && more->is_map() && !more->entries().empty())
    p.out.put("policy.tokenizer.chat_template_kwargs", more);
  const std::string truncation = p.file.text("data.truncation").value_or("error");
  const bool filtered = p.file.flag("data.filter_overlong_prompts");
  if (!filtered && truncation != "error")
    p.out.leave_out("data.truncation",
                    truncation + ": a prompt that is too long is cut at its end, and does not train");
  translate_rewards(p);
}

}  // namespace hexad::compat::verl
