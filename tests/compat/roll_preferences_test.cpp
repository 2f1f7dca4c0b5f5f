// ROLL's DPO pipeline: what comes out of its files.
#include "core/config/typed/run_config.hpp"
#include "tests/compat/roll_file.hpp"

using namespace compat_test;
using hexad::config::Resolved;
using hexad::config::RunConfig;

namespace {

const std::string kPairs = R"(exp_name: pairs
seed: 5
max_steps: 300
save_steps: 50
eval_steps: 20
sequence_length: 64
pretrain: m
chosen_key: better
rejected_key: worse
beta: 0.1
ipo: false
label_smoothing: 0.0
global_template: qwen2_5
validation:
  data_args: {file_name: held_out.json}
actor_train:
  training_args:
    learning_rate: 1.0e-6
    lr_scheduler_type: constant
    per_device_train_batch_size: 4
    gradient_accumulation_steps: 2
    num_train_epochs: 10
  data_args: {file_name: [a.json, b.json]}
  strategy_args:
    strategy_name: megatron_train
    strategy_config: {tensor_model_parallel_size: 2}
  device_mapping: list(range(0,4))
  infer_batch_size: 3
reference:
  strategy_args: {strategy_name: megatron_infer}
  infer_batch_size: 8
)";

}  // namespace

TEST_CASE("a DPO file comes to dpo") {
  const Resolved resolved = resolve_text({}, kPairs);
  const RunConfig run = hexad::config::run_config(resolved);
  CHECK(run.algorithm == hexad::config::Algorithm::dpo);
  const auto& root = resolved.root;
  CHECK(root.as_int("dpo.seed") == 5);
  CHECK(root.as_int("dpo.max_num_steps") == 300);
  CHECK(root.as_int("dpo.max_num_epochs") == 10);
  CHECK(root.as_int("dpo.val_period") == 20);
  CHECK(root.as_bool("dpo.val_at_start"));
  CHECK(root.as_int("dpo.val_batches") == -1);
  CHECK(root.as_int("dpo.val_micro_batch_size") == 3);
  CHECK(root.as_int("dpo.val_global_batch_size") == 12);  // 3 pairs x 2 micro-batches x 2 data-parallel ranks
  CHECK(root.as_double("dpo.reference_policy_kl_penalty") == 0.1);
  CHECK(root.as_double("dpo.preference_loss_weight") == 1);
  CHECK(root.as_double("dpo.sft_loss_weight") == 0);
  CHECK(!root.as_bool("dpo.preference_average_log_probs"));
  CHECK(run.policy.backend == "megatron");
  CHECK(run.policy.train_micro_batch_size == 4);
  CHECK(run.policy.train_global_batch_size == 16);
  CHECK(run.policy.max_total_sequence_length == 64);
  CHECK(root.as_int("data.max_input_seq_length") == 64);
  CHECK(run.checkpointing.save_period == 50);
  CHECK(run.cluster.gpus_per_node == 4);
  REQUIRE(run.data.train.size() == 2);
  const auto set = root.at("data.train").items()[1];
  CHECK(set.as_string("dataset_name") == "BinaryPreferenceDataset");
  CHECK(set.as_string("data_path") == "b.json");
  CHECK(set.as_string("prompt_key") == "instruction");
  CHECK(set.as_string("chosen_key") == "better");
  CHECK(set.as_string("rejected_key") == "worse");
  CHECK(root.at("data.validation").items()[0].as_string("data_path") == "held_out.json");
  CHECK(tells(resolved, "global_template", "the chat template of the model's own tokenizer is used"));
  CHECK(has_notice(resolved, "reference", "actor_train's ranks compute its log-probs"));
  CHECK(!tells(resolved, "beta", ""));
}

TEST_CASE("another beta is in force here, and a file without validation has none") {
  const Resolved resolved = resolve_text({"beta=0.3", "~validation"}, kPairs);
  CHECK(resolved.root.as_double("dpo.reference_policy_kl_penalty") == 0.3);
  CHECK(has_notice(resolved, "beta", "0.3 is in force here; ROLL's pipeline does not hand it to its loss"));
  CHECK(resolved.root.as_int("dpo.val_period") == 0);
  CHECK(!resolved.root.as_bool("dpo.val_at_start"));
}

TEST_CASE("a constant rate rises first under Megatron, and only there") {
  const Overrides warm = {"++actor_train.training_args.warmup_steps=20"};
  const RunConfig run = hexad::config::run_config(resolve_text(warm, kPairs));
  REQUIRE(run.policy.scheduler.size() == 3);
  CHECK(run.policy.scheduler[0]["kwargs"]["total_iters"] == 20);
  CHECK(run.policy.scheduler[1]["name"] == "torch.optim.lr_scheduler.ConstantLR");
  CHECK(run.policy.scheduler[2]["milestones"][0] == 20);
  CHECK(resolve_text({}, kPairs).root.at("policy.scheduler").is_null());
  Overrides shared = warm;
  shared.emplace_back("~actor_train.strategy_args.strategy_config");
  shared.emplace_back("actor_train.strategy_args.strategy_name=fsdp2_train");
  const Resolved flat = resolve_text(shared, kPairs);
  CHECK(flat.root.at("policy.scheduler").is_null());
  CHECK(has_notice(flat, "actor_train.training_args.warmup_steps", "constant has no warm-up (as in ROLL)"));
}

TEST_CASE("what a DPO file cannot have is refused") {
  const std::vector<std::pair<Overrides, std::string>> cases = {
      {{"ipo=true"}, "ipo: the IPO loss is not available in this version"},
      {{"label_smoothing=0.1"}, "label_smoothing: DPO with smoothed labels is not available in this version"},
      {{"~sequence_length"}, "sequence_length: is missing: give the most tokens of a prompt and its answer"},
      {{"~actor_train.data_args.file_name"},
       "actor_train.data_args.file_name: is missing: name the files of the pairs"},
      {{"beta=0"}, "beta: got int 0, wanted above 0"},
      {{"++chosen_kye=x"}, "chosen_kye: unknown key; did you mean chosen_key?"},
      {{"++actor_train.model_args.lora_target=all"}, "actor_train.model_args.lora_target: LoRA is not available"},
  };
  CHECK(resolve_error({}, kPairs) == "");
  for (const auto& [overrides, message] : cases) {
    CAPTURE(overrides.front());
    check_says(resolve_error(overrides, kPairs), message);
  }
}

TEST_CASE("numbers out of range in a DPO file are said and break nothing") {
  for (const char* key :
       {"sequence_length", "max_steps", "eval_steps", "beta", "actor_train.infer_batch_size",
        "actor_train.training_args.num_train_epochs", "actor_train.training_args.gradient_accumulation_steps"}) {
    for (const std::string& value :
         std::vector<std::string>{"0", "-3", "9000000000000000", "many", "[]", "{}", ".nan"}) {
      INFO(key << " = " << value);
      const std::string said = resolve_error({fmt::format("++{}={}", key, value)}, kPairs);
      if (value == "many") check_says(said, "got text 'many'");
    }
  }
}
