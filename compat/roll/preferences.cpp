// The DPO pipeline: pairs of answers in the place of rollouts.
#include "compat/roll/pass.hpp"

namespace hexad::config::roll {
namespace {

void set_course(Pass& p) {
  p.move("seed", "dpo.seed");
  p.move("max_steps", "dpo.max_num_steps");
  const char* const epochs = "actor_train.training_args.num_train_epochs";
  p.set("dpo.max_num_epochs", std::max<int64_t>(static_cast<int64_t>(p.file.number(epochs).value_or(1)), 1), epochs);
  const bool validates = p.file.given("validation.data_args.file_name") != nullptr;
  p.set("dpo.val_period", validates ? p.file.integer("eval_steps").value_or(10) : int64_t{0}, "eval_steps");
  p.set("dpo.val_at_start", validates, "eval_steps");
  p.set("dpo.val_batches", int64_t{-1}, "eval_steps");
  const char* const batch = "actor_train.infer_batch_size";
  const int64_t micro = p.file.integer(batch).value_or(16);
  int64_t global = 0;
  const int64_t accumulated = p.file.integer("actor_train.training_args.gradient_accumulation_steps").value_or(1);
  if (__builtin_mul_overflow(micro, accumulated, &global) || __builtin_mul_overflow(global, p.data_parallel, &global))
    return;
  p.set("dpo.val_micro_batch_size", micro, batch);
  p.set("dpo.val_global_batch_size", global, batch);
}

void set_longest(Pass& p) {
  const std::optional<int64_t> longest = p.file.integer("sequence_length");
  if (!longest) return p.file.error("sequence_length", "is missing: give the most tokens of a prompt and its answer");
  p.move("sequence_length", "policy.max_total_sequence_length");
  p.move("sequence_length", "data.max_input_seq_length");
}

void set_pairs(Pass& p, const std::string& role, const std::string& path) {
  const std::string key = role + ".data_args.file_name";
  const yaml::Node* files = p.file.given(key);
  if (!files || (files->is_list() && files->items().empty())) {
    if (role == "actor_train") p.file.error(key, "is missing: name the files of the pairs");
    return;
  }
  const yaml::Location place = p.file.location(key);
  yaml::Node::List sets;
  for (const yaml::Node& file : files->is_list() ? files->items() : yaml::Node::List{*files}) {
    yaml::Node pairs(yaml::Node::Map{}, place);
    pairs.set("dataset_name", yaml::Node(std::string("BinaryPreferenceDataset"), place));
    pairs.set("data_path", file);
    pairs.set("prompt_key", yaml::Node(std::string("instruction"), place));  // ROLL's only name for it
    for (const char* column : {"chosen_key", "rejected_key"})
      pairs.set(column, yaml::Node(p.file.text(column).value_or(""), p.file.location(column)));
    sets.push_back(std::move(pairs));
  }
  p.out.set(path, yaml::Node(std::move(sets), place));
}

void set_loss(Pass& p) {
  const double beta = p.file.number("beta").value_or(0.1);
  p.move("beta", "dpo.reference_policy_kl_penalty");
  if (beta != 0.1) {
    p.file.notice("beta", fmt::format("{} is in force here; ROLL's pipeline does not hand it to its loss, which takes "
                                      "0.1",
                                      beta));
  }
}

}  // namespace

void translate_preferences(Pass& p) {
  set_course(p);
  set_longest(p);
  set_loss(p);
  p.set("policy.max_grad_norm",
        p.file.number("max_grad_norm") ? yaml::Node::Value(*p.file.number("max_grad_norm")) : yaml::Node::Value(),
        "max_grad_norm");
  set_pairs(p, "actor_train", "data.train");
  set_pairs(p, "validation", "data.validation");
  translate_template(p);
  translate_reference(p);
}

}  // namespace hexad::config::roll
