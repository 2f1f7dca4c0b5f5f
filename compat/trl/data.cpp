// Data sets, and what scores the responses.
#include "compat/trl/pass.hpp"
#include "lib/base/text.hpp"

namespace hexad::compat::trl {
namespace {

using yaml::Node;

// TRL's trainers tell the types of its page "Dataset formats and types" by the columns of the rows; so does this.
constexpr const char* kByColumns = "ResponseDataset";

std::string columns_comment(Trainer trainer) {
  std::string told = "what a row is, its columns tell (docs/data.md)";
  if (trainer != Trainer::grpo) return told;
  return told + "; where several could be the answer, output_key names the one that the reward compares with";
}

Node dataset(const std::string& path, const std::string& split) {
  Node set{Node::Map{}};
  set.set("dataset_name", Node(std::string(kByColumns)));
  set.set("data_path", path_node(path));
  if (!path.ends_with(".jsonl") && !path.ends_with(".json")) set.set("split", Node(split));
  return set;
}

// One of `datasets`; its place in the list for messages.
Node of_mixture(Pass& p, size_t index) {
  const std::string at = fmt::format("datasets.{}.", index);
  const std::optional<std::string> path = p.args.text(at + "path");
  if (!path) p.args.refuse(at + "path", "is missing, wanted the name or path of a data set");
  const std::vector<std::string> files = p.args.texts(at + "data_files");
  Node set = dataset(files.empty() ? *path : files.front(), p.args.text(at + "split").value_or("train"));
  if (files.size() > 1) p.out.leave_out(at + "data_files", "one file or folder is a data set here");
  if (const auto name = p.args.text(at + "name")) set.set("subset", Node(*name));
  if (p.args.value(at + "fraction")) p.out.leave_out(at + "fraction", "a data set counts by its rows here");
  return set;
}

Node mixture(Pass& p, const Node& list) {
  Node::List sets;
  for (size_t i = 0; i < list.items().size(); ++i) sets.push_back(of_mixture(p, i));
  return sets.size() == 1 ? sets.front() : Node(std::move(sets));
}

// As TRL's scripts call it.
void punish_length(Pass& p) {
  const std::string at = "grpo.reward_shaping.";
  p.out.set(at + "enabled", true, "get_soft_overlong_punishment(1280, 256) of TRL's scripts");
  p.out.set(at + "overlong_buffer_length", int64_t{256});
  p.out.set(at + "overlong_buffer_penalty", 1.0);
  p.out.set(at + "max_response_length", int64_t{1280});
}

}  // namespace

void translate_data(Pass& p) {
  const Node* list = p.args.value("datasets");
  const bool several = list && list->is_list() && !list->items().empty();
  const std::optional<std::string> name = p.args.text("dataset_name");
  if (!several && !name)
    p.args.refuse("dataset_name",
                  "is missing, for to_dict() does not hold the data; put dataset_name=NAME behind the file");
  const std::string split = p.args.text("dataset_train_split").value_or("train");
  Node train = several ? mixture(p, *list) : dataset(*name, split);
  const std::optional<std::string> subset = several ? std::nullopt : p.args.text("dataset_config");
  if (subset) train.set("subset", Node(*subset));
  const std::optional<double> share = p.args.number("test_split_size");
  if (share && train.is_map()) train.set("split_validation_size", Node(*share));
  const bool asked = p.trainer == Trainer::sft || p.trainer == Trainer::grpo;  // the others always do
  p.out.set("data.shuffle", !asked || p.args.flag("shuffle_dataset"));
  p.out.put("data.train", &train, columns_comment(p.trainer));
  if (p.trainer != Trainer::grpo) {  // TRL's tokens of a conversation
    p.out.set("data.add_bos", false, "nothing stands before what the chat template writes");
    p.out.set("data.add_generation_prompt", true, "the header of an answer is given, and does not train");
  }
  const std::string test = p.args.text("dataset_test_split").value_or("test");
  if (several || share || p.args.text("eval_strategy").value_or("no") == "no") return;
  Node validation = dataset(*name, test);
  if (subset) validation.set("subset", Node(*subset));
  p.out.put("data.validation", &validation);
}

void translate_rewards(Pass& p) {
  bool math = false;
  std::vector<std::string> others;
  for (const std::string& name : p.args.texts("reward_funcs")) {
    if (name == "accuracy_reward" || name == "reasoning_accuracy_reward") {
      math = true;
    } else if (name == "get_soft_overlong_punishment") {
      punish_length(p);
    } else {
      others.push_back(name);
    }
  }
  if (!others.empty() || !math)
    p.out.leave_out(
        "reward_funcs",
        fmt::format(
            "{}. A function of yours in a file of its own is called as TRL calls it: env: {{my_reward: {{python: "
            "my_reward.py}}}} (docs/rewards.md)",
            others.empty() ? "none is named in the file" : joined(others) + ": Python inside of TRL"));
  if (p.args.value("reward_weights"))
    p.out.leave_out("reward_weights", "env.NAME.rewards has a weight for each reward (docs/rewards.md)");
  const std::string env = math ? "math" : "exact_answer";
  p.out.set("data.default.env_name", env,
            math ? "" : "a stand-in for the rewards that are left out: 1 for the answer's text");
  p.out.set("env." + env, yaml::Node::Map{});
}

}  // namespace hexad::compat::trl
