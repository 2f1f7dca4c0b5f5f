// sft, dpo and rm: which algorithm a configuration is of, its defaults, and the rules between its keys.
#include "core/config/typed/run_config.hpp"
#include "tests/config/support.hpp"

using namespace config_test;
using hexad::config::Algorithm;
using hexad::config::run_config;

namespace {

std::string valid(const std::string& block, const std::string& more = "") {
  return "policy: {model_name: m, train_global_batch_size: 8, train_micro_batch_size: 2}\n"
         "data: {train: {dataset_name: arithmetic}}\n" +
         block + "\n" + more;
}

const std::string kSft = valid("sft: {max_num_steps: 3}"), kDpo = valid("dpo: {max_num_steps: 3}"),
                  kRm = valid("rm: {max_num_steps: 3}");

}  // namespace

TEST_CASE("the block names the algorithm, and brings its own loss, folder and metric") {
  const auto sft = run_config(resolve_text({}, kSft));
  CHECK(sft.algorithm == Algorithm::sft);
  CHECK(sft.loss_fn.plugin == "nll");
  CHECK(sft.loss_fn.section == "loss_fn");
  CHECK(sft.checkpointing.checkpoint_dir == "results/sft");
  CHECK(sft.checkpointing.metric_name == "val:val_loss");
  CHECK_FALSE(sft.checkpointing.higher_is_better);
  CHECK(sft.supervised.max_num_steps == 3);
  CHECK(sft.supervised.val_period == 10);
  CHECK(sft.data.train.at(0).processor == "sft_processor");
  CHECK(sft.data.add_bos);
  CHECK_FALSE(sft.data.add_generation_prompt);

  const auto dpo = resolve_text({"++dpo.preference_average_log_probs=true"}, kDpo);
  CHECK(run_config(dpo).loss_fn.plugin == "dpo");
  CHECK(run_config(dpo).loss_fn.section == "dpo");
  CHECK(run_config(dpo).data.train.at(0).processor == "preference_processor");
  CHECK(dpo.root.at("dpo.reference_policy_kl_penalty").as_double() == 0.05);
  CHECK(dpo.root.at("dpo.sft_average_log_probs").as_bool());  // follows the preference's
  CHECK_FALSE(dpo.root.child("grpo"));

  const auto rm = run_config(resolve_text({}, kRm));
  CHECK(rm.algorithm == Algorithm::rm);
  CHECK(rm.loss_fn.plugin == "preference");
  CHECK(rm.checkpointing.metric_name == "val:validation-default_loss");
  CHECK(rm.supervised.val_batches == -1);

  CHECK(run_config(resolve_text({})).algorithm == Algorithm::grpo);
  CHECK(run_config(resolve_text({"++sft=null"})).algorithm == Algorithm::grpo);
  CHECK(run_config(resolve_text({"++loss_fn.plugin=mine"}, kSft)).loss_fn.plugin == "mine");
}

TEST_CASE("a run is of one algorithm") {
  check_says(resolve_error({"++dpo={max_num_steps: 3}"}, kSft),
             "dpo: sft is there too, and a run is of one algorithm: leave one of the blocks out, or set it to null");
  CHECK(resolve_error({"++dpo={max_num_steps: 3}", "sft=null"}, kSft) == "");
}

TEST_CASE("sizes count examples and divide over the ranks") {
  check_says(resolve_error({"policy.train_micro_batch_size=3"}, kSft),
             "policy.train_micro_batch_size: got 3, which does not divide the 8 conversations of a rank");
  check_says(resolve_error({"policy.train_micro_batch_size=3"}, kDpo), "does not divide the 8 pairs of a rank");
  check_says(resolve_error({"++cluster.gpus_per_node=3"}, kSft),
             "policy.train_global_batch_size: got 8, wanted a multiple of the 3 data-parallel ranks");
  CHECK(resolve_error({"policy.train_micro_batch_size=3", "++policy.sequence_packing.enabled=true"}, kSft) == "");
  // A pack must take a pair.
  const auto packed = [](const std::string& text) {
    return resolve_text({"++policy.sequence_packing.enabled=true", "++policy.max_total_sequence_length=64",
                         "++policy.sequence_packing.train_mb_tokens=100"},
                        text);
  };
  CHECK(has_notice(packed(kDpo), "policy.sequence_packing.train_mb_tokens", "a pair of sequences of"));
  CHECK_FALSE(has_notice(packed(kSft), "policy.sequence_packing.train_mb_tokens", "would not fit"));
}

TEST_CASE("how rows become examples is the algorithm's") {
  check_says(resolve_error({"++data.train.processor=math_hf_data_processor"}, kSft),
             "data.train.processor: got 'math_hf_data_processor', wanted sft_processor with sft");
  check_says(resolve_error({"++data.default={processor: sft_processor}"}, kDpo),
             "data.default.processor: got 'sft_processor', wanted preference_processor with dpo");
  check_says(resolve_error({"++data.validation={dataset_name: arithmetic, processor: math_hf_data_processor}"}, kSft),
             "data.validation.processor: got 'math_hf_data_processor', wanted sft_processor with sft");
  check_says(resolve_error({"++data.processor=math_hf_data_processor"}, kSft),
             "data.processor: got 'math_hf_data_processor', wanted sft_processor with sft");
  check_says(resolve_error({"++data.train.processor=sft_processor"}),
             "data.train.processor: got 'sft_processor', wanted one that makes prompts");
  CHECK(resolve_error({"++data.train.processor=sft_processor"}, kSft) == "");
}

TEST_CASE("a reward head belongs to rm") {
  check_says(resolve_error({"++policy.reward_model_cfg.enabled=true"}, kSft),
             "policy.reward_model_cfg.enabled: got true: a reward model is trained by a block rm");
  check_says(resolve_error({"++policy.reward_model_cfg.enabled=false"}, kRm),
             "policy.reward_model_cfg.enabled: got false, and rm trains a reward model");
  check_says(resolve_error({"++policy.reward_model_cfg.reward_model_type=regression"}, kRm),
             "policy.reward_model_cfg.reward_model_type");
  CHECK(resolve_error({"++policy.reward_model_cfg.enabled=true", "++cluster.gpus_per_node=2"}, kRm) == "");
}

TEST_CASE("schedules that count steps need to know how many there are") {
  const std::string megatron = valid("rm: null\ndpo: {max_num_steps: -1}");
  const Overrides base = {"++policy.megatron_cfg.enabled=true", "++policy.dtensor_cfg.enabled=false",
                          "++policy.megatron_cfg.scheduler={lr_decay_iters: null}"};
  check_says(resolve_error(base, megatron), "null is dpo.max_num_steps, which is -1; wanted a number of steps");
}

TEST_CASE("keys of sampling have no effect, and rules of sampling none to say") {
  const auto resolved = resolve_text({"++policy.generation.temperature=0.5"}, kSft);
  CHECK(has_notice(resolved, "policy.generation.temperature", "no effect: sft samples nothing"));
  CHECK(hexad::config::generation_ranks(
            run_config(resolve_text({"++policy.generation.colocated.enabled=false"}, kSft))) == 0);
  CHECK(has_notice(resolve_text({"++data.add_bos=true"}), "data.add_bos", "no effect"));
  CHECK_FALSE(has_notice(resolve_text({"++data.add_bos=false"}, kSft), "data.add_bos", "no effect"));
}

TEST_CASE("values out of range are refused") {
  check_says(resolve_error({"++sft.max_num_epochs=0"}, kSft), "sft.max_num_epochs: got int 0, wanted at least 1");
  check_says(resolve_error({"++dpo.reference_policy_kl_penalty=0"}, kDpo),
             "dpo.reference_policy_kl_penalty: got int 0");
  check_says(resolve_error({"++rm.val_micro_batch_size=0"}, kRm), "rm.val_micro_batch_size: got int 0");
  check_says(resolve_error({"++sft.reference_policy_kl_penalty=1"}, kSft),
             "sft.reference_policy_kl_penalty: unknown key");
}
