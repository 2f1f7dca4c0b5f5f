// TRL's arguments written as a configuration: sizes, losses, schedules, and what is named because it is left out.
#include "compat/trl/translate.hpp"

#include "compat/draft/foreign.hpp"
#include "lib/yaml/file.hpp"
#include "tests/compat/support.hpp"

using namespace compat_test;
using hexad::compat::Draft;
using hexad::compat::TrlOptions;
using hexad::yaml::Node;

namespace {

Draft written(const std::string& args, const TrlOptions& options = {}) {
  return hexad::compat::from_trl(hexad::yaml::read_text(args, "args.yaml"), options);
}

// GRPO on 2 processes unless said otherwise, with what a test adds.
Draft grpo(const std::string& more, int64_t processes = 2) {
  return written("model_name_or_path: m\ndataset_name: d\nnum_generations: 8\n" + more, {{}, processes});
}

std::string refused(const std::string& args, const TrlOptions& options = {}) {
  return message_of([&] { written(args, options); });
}

std::string value(const Draft& draft, const std::string& path) {
  const Node* node = draft.root().find(path);
  return node ? node->to_json().dump() : "absent";
}

std::string why(const Draft& draft, const std::string& key) {
  for (const auto& each : draft.left_out()) {
    if (each.key == key) return each.why;
  }
  return "";
}

void is(const Draft& draft, const std::string& path, const std::string& json) {
  CHECK_MESSAGE(value(draft, path) == json, path << ": " << value(draft, path) << ", wanted " << json);
}

// Prompts, samples of each, samples of an optimizer step and of a micro-batch.
void sizes(const Draft& draft, const std::vector<int64_t>& wanted) {
  const Node& root = draft.root();
  CHECK(std::vector<int64_t>{root.as_int("grpo.num_prompts_per_step"), root.as_int("grpo.num_generations_per_prompt"),
                             root.as_int("policy.train_global_batch_size"),
                             root.as_int("policy.train_micro_batch_size")} == wanted);
}

}  // namespace

TEST_CASE("TRL's generation batch is prompts times samples, and its accumulated batch an optimizer step's samples") {
  // 4 a device x 2 devices x 4 accumulated = 32 samples: drawn at once, and one optimizer step.
  sizes(grpo("per_device_train_batch_size: 4\ngradient_accumulation_steps: 4\n"), {4, 8, 32, 4});
  // steps_per_generation 8: 64 samples, 2 optimizer steps.
  const Draft two = grpo(
      "per_device_train_batch_size: 4\ngradient_accumulation_steps: 4\nsteps_per_generation: 8\n"
      "max_steps: 100\nsave_steps: 7\n");
  sizes(two, {8, 8, 32, 4});
  is(two, "grpo.max_num_steps", "50");
  is(two, "checkpointing.save_period", "4");  // of 2 optimizer steps each
  CHECK(
      two.text("t").find("per_device_train_batch_size 4 x 2 processes x steps_per_generation 8; / num_generations 8") !=
      std::string::npos);
  sizes(grpo("per_device_train_batch_size: 4\ngradient_accumulation_steps: 4\ngeneration_batch_size: 64\n"),
        {8, 8, 32, 4});
  // Drawn twice for one optimizer step, by the same weights: at once here.
  sizes(grpo("per_device_train_batch_size: 4\ngradient_accumulation_steps: 4\nsteps_per_generation: 2\n"),
        {4, 8, 32, 4});
  // Neither divides the other: 6 micro-batches are the least that both divide.
  const Draft odd = grpo("per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\nsteps_per_generation: 3\n");
  sizes(odd, {6, 8, 16, 4});
  check_says(why(odd, "steps_per_generation"),
             "3 and gradient_accumulation_steps 2 do not divide each other: a step "
             "here draws 6 micro-batches at once");
}

TEST_CASE("a dump has both sizes of a generation, and with them the number of processes") {
  const std::string dump =
      "model_name_or_path: m\ndataset_name: d\nnum_generations: 8\nper_device_train_batch_size: 4\n"
      "gradient_accumulation_steps: 4\nsteps_per_generation: 4\ngeneration_batch_size: 128\n";
  const Draft draft = written(dump);
  sizes(draft, {16, 8, 128, 4});
  is(draft, "cluster.gpus_per_node", "8");
  CHECK(refused(dump, {{}, 2}) ==
        "args.yaml:7:1: generation_batch_size: 128 is that of 8 processes, and --processes says 2");
  check_says(refused(dump + "max_steps: 1\n", {{}, 8}), "");
  const std::string odd =
      "num_generations: 8\nper_device_train_batch_size: 4\nsteps_per_generation: 4\n"
      "generation_batch_size: 100\n";
  CHECK(refused(odd) ==
        "args.yaml:4:1: generation_batch_size: got 100, wanted per_device_train_batch_size x processes "
        "x steps_per_generation, a multiple of 16");
  is(grpo("per_device_train_batch_size: 4\n", 16), "cluster.num_nodes", "2");
}

TEST_CASE("num_iterations above 1 is named, and steps count the samples that are drawn") {
  const Draft draft = grpo(
      "per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\nnum_iterations: 4\n"
      "max_steps: 100\n");
  sizes(draft, {2, 8, 16, 4});
  is(draft, "grpo.max_num_steps", "25");
  CHECK(why(draft, "num_iterations") == "4, and here each sample trains once; steps are counted by samples drawn");
}

TEST_CASE("each loss of TRL's is the nearest of ours, and what differs is named") {
  const Draft dapo = grpo("epsilon: 0.1\nepsilon_high: 0.28\ndelta: 1.5\n");
  is(dapo, "loss_fn.token_level_loss", "true");
  is(dapo, "loss_fn.ratio_clip_min", "0.1");
  is(dapo, "loss_fn.ratio_clip_max", "0.28");
  is(dapo, "loss_fn.ratio_clip_c", "1.5");
  is(dapo, "loss_fn.reference_policy_kl_penalty", "0.0");
  is(dapo, "loss_fn.kl_input_clamp_value", "absent");
  CHECK(why(dapo, "loss_type").empty());
  is(grpo("epsilon: 0.3\n"), "loss_fn.ratio_clip_max", "0.3");
  is(grpo("loss_type: grpo\n"), "loss_fn.token_level_loss", "false");
  check_says(why(grpo("loss_type: bnpo\n"), "loss_type"), "bnpo: TRL takes the mean over the tokens of a micro-batch");
  check_says(why(grpo("loss_type: dr_grpo\n"), "loss_type"),
             "dr_grpo: TRL divides by max_completion_length x sequences");
  check_says(why(grpo("loss_type: sapo\n"), "loss_type"), "'sapo' is not available; written as dapo");
  const Draft cispo = grpo("loss_type: cispo\nepsilon_high: 5.0\n");
  is(cispo, "loss_fn.use_cispo", "true");
  is(cispo, "loss_fn.ratio_clip_min", "1.0");
  is(cispo, "loss_fn.ratio_clip_max", "4.0");  // 1 + this is the largest ratio
  check_says(why(grpo("loss_type: cispo\n"), "epsilon_high"), "0.2 of cispo, where it is the largest ratio");
  const Draft gspo = grpo("loss_type: grpo\nimportance_sampling_level: sequence\n");
  is(gspo, "loss_fn.sequence_level_importance_ratios", "true");
  CHECK(why(gspo, "loss_type").empty());
  const Draft mixed = grpo("importance_sampling_level: sequence\n");
  is(mixed, "loss_fn.token_level_loss", "false");
  check_says(why(mixed, "loss_type"), "a mean over tokens does not go with ratios of sequences");
  CHECK(refused("num_generations: 8\nmodel_name_or_path: m\nimportance_sampling_level: word\n") ==
        "args.yaml:3:1: importance_sampling_level: got 'word', wanted token or sequence");
}

TEST_CASE("KL, advantages and truncated completions") {
  const Draft kl = grpo("beta: 0.04\nuse_bias_correction_kl: true\n");
  is(kl, "loss_fn.reference_policy_kl_penalty", "0.04");
  is(kl, "loss_fn.reference_policy_kl_type", "\"k3\"");
  is(kl, "loss_fn.kl_input_clamp_value", "null");
  check_says(why(kl, "use_bias_correction_kl"), "use_on_policy_kl_approximation");
  is(kl, "grpo.use_leave_one_out_baseline", "false");
  is(kl, "grpo.normalize_rewards", "true");
  is(kl, "grpo.overlong_filtering", "absent");
  for (const char* none : {"false", "none"})
    is(grpo(std::string("scale_rewards: ") + none + "\n"), "grpo.normalize_rewards", "false");
  is(grpo("scale_rewards: true\n"), "grpo.normalize_rewards", "true");
  const Draft batch = grpo("scale_rewards: batch\nmask_truncated_completions: true\n");
  is(batch, "grpo.normalize_rewards", "false");
  check_says(why(batch, "scale_rewards"), "batch: advantages are not divided by the deviation of a whole batch");
  is(batch, "grpo.overlong_filtering", "true");
  is(batch, "compat.filtered_samples_vote", "true");
  check_says(why(grpo("sync_ref_model: true\n"), "sync_ref_model"),
             "the reference policy is the model that the run began");
  CHECK(refused("num_generations: 8\nmodel_name_or_path: m\nscale_rewards: std\n") ==
        "args.yaml:3:1: scale_rewards: got 'std', wanted group, batch or none");
}

TEST_CASE("sampling, lengths and vLLM") {
  const Draft draft =
      grpo("temperature: 0.7\ntop_k: 50\nmin_p: 0.1\nmax_prompt_length: 100\nmax_completion_length: 200\n");
  is(draft, "policy.generation.backend", "\"native\"");
  is(draft, "policy.generation.temperature", "0.7");
  is(draft, "policy.generation.top_k", "50");
  is(draft, "policy.max_total_sequence_length", "300");
  is(draft, "data.max_input_seq_length", "100");
  is(grpo("max_completion_length: 200\n"), "policy.max_total_sequence_length", "712");
  const std::string vllm = "use_vllm: true\nvllm_tensor_parallel_size: 2\n";
  const Draft served = grpo(vllm);
  is(served, "policy.generation.backend", "\"vllm\"");
  is(served, "policy.generation.vllm_cfg.tensor_parallel_size", "2");
  is(served, "policy.generation.vllm_cfg.gpu_memory_utilization", "0.3");
  check_says(why(served, "vllm_importance_sampling_mode"), "sequence_mask: here weights are bounded by token");
  is(served, "loss_fn.use_importance_sampling_correction", "absent");
  const Draft bounded =
      grpo(vllm + "vllm_importance_sampling_mode: token_truncate\nvllm_importance_sampling_cap: 2.0\n");
  is(bounded, "loss_fn.truncated_importance_sampling_type", "\"tis\"");
  is(bounded, "loss_fn.truncated_importance_sampling_ratio", "2.0");
  const Draft masked =
      grpo(vllm + "vllm_importance_sampling_mode: token_mask\nvllm_importance_sampling_clip_min: 0.5\n");
  is(masked, "loss_fn.truncated_importance_sampling_type", "\"icepop\"");
  is(masked, "loss_fn.truncated_importance_sampling_ratio_min", "0.5");
  check_says(why(grpo(vllm + "vllm_mode: server\n"), "vllm_mode"), "servers on the GPUs that train");
  CHECK(
      why(grpo("vllm_gpu_memory_utilization: 0.5\n"), "vllm_gpu_memory_utilization").empty());  // without vLLM nothing
  check_says(why(grpo("repetition_penalty: 1.1\n"), "repetition_penalty"), "is not available");
}

TEST_CASE("schedules of transformers in PyTorch's classes, by steps of ours") {
  const std::string batch = "per_device_train_batch_size: 4\nsteps_per_generation: 2\nlearning_rate: 1.0e-5\n";
  const Draft linear = grpo(batch + "max_steps: 100\nwarmup_steps: 0.1\n");  // 2 optimizer steps a step
  is(linear, "policy.scheduler.0.kwargs.total_iters", "5");
  is(linear, "policy.scheduler.1.name", "\"torch.optim.lr_scheduler.LinearLR\"");
  is(linear, "policy.scheduler.1.kwargs.total_iters", "45");
  is(linear, "policy.scheduler.1.kwargs.end_factor", "0.0");
  is(linear, "policy.scheduler.2.milestones", "[5]");
  const Draft cosine = grpo(batch +
                            "max_steps: 100\nlr_scheduler_type: cosine_with_min_lr\n"
                            "lr_scheduler_kwargs: {min_lr_rate: 0.1}\n");
  is(cosine, "policy.scheduler.name", "\"torch.optim.lr_scheduler.CosineAnnealingLR\"");
  is(cosine, "policy.scheduler.kwargs.T_max", "50");
  CHECK(cosine.root().as_double("policy.scheduler.kwargs.eta_min") == doctest::Approx(1e-6));
  is(grpo(batch + "lr_scheduler_type: constant\nwarmup_steps: 5\n"), "policy.scheduler", "absent");
  const Draft warm = grpo(batch + "lr_scheduler_type: constant_with_warmup\nwarmup_steps: 5\n");
  is(warm, "policy.scheduler.1.name", "\"torch.optim.lr_scheduler.ConstantLR\"");
  const Draft endless = grpo(batch + "warmup_ratio: 0.1\n");
  is(endless, "policy.scheduler", "absent");
  check_says(why(endless, "lr_scheduler_type"),
             "linear: the fall to the end needs the length of the run; put max_steps=N");
  check_says(why(endless, "warmup_ratio"), "a share of the run, whose length max_steps would say");
  check_says(why(grpo(batch + "lr_scheduler_type: polynomial\n"), "lr_scheduler_type"),
             "'polynomial': policy.scheduler");
}

TEST_CASE("optimizer, precision, checkpoints and reports") {
  const Draft draft = grpo(
      "learning_rate: 1e-6\nadam_beta2: 0.95\nmax_grad_norm: 0\nfp16: true\noutput_dir: ~/out\n"
      "save_total_limit: 2\nreport_to: [wandb, tensorboard, comet_ml]\neval_strategy: steps\n"
      "eval_steps: 10\nnum_train_epochs: 2.5\n");
  is(draft, "policy.optimizer.kwargs.lr", "1e-06");
  is(draft, "policy.optimizer.kwargs.betas", "[0.9,0.95]");
  is(draft, "policy.max_grad_norm", "null");
  is(draft, "policy.precision", "\"float16\"");
  is(draft, "checkpointing.keep_top_k", "2");
  is(draft, "logger.tensorboard_enabled", "true");
  is(draft, "logger.wandb_enabled", "true");
  check_says(why(draft, "report_to"), "comet_ml: what there is instead is in docs/trackers.md");
  is(draft, "grpo.val_period", "10");
  is(draft, "data.validation.split", "\"test\"");
  is(draft, "grpo.max_num_epochs", "3");
  check_says(why(draft, "num_train_epochs"), "2.5: epochs are whole ones here");
  check_says(draft.text("t"), "checkpoint_dir: \"${oc.env:HOME}/out\"");
  is(grpo(""), "policy.precision", "\"bfloat16\"");
  is(grpo("bf16: false\ndtype: bfloat16\n"), "policy.precision", "\"bfloat16\"");
  is(grpo("bf16: false\n"), "policy.precision", "\"float32\"");
  check_says(why(grpo("optim: paged_adamw_8bit\n"), "optim"), "'paged_adamw_8bit' is not available; written as AdamW");
  is(grpo("save_strategy: no\n"), "checkpointing.enabled", "false");
  is(grpo("max_steps: 100\nsave_steps: 0.25\n"), "checkpointing.save_period", "25");
  check_says(why(grpo("save_steps: 0.25\n"), "save_steps"), "0.25 of the run, whose length max_steps would say");
}

TEST_CASE("rewards by TRL's own names; others are Python and are named") {
  const Draft math = grpo("reward_funcs: [accuracy_reward, get_soft_overlong_punishment]\n");
  is(math, "env", "{\"math\":{}}");
  is(math, "data.default.env_name", "\"math\"");
  is(math, "grpo.reward_shaping.max_response_length", "1280");
  CHECK(why(math, "reward_funcs").empty());
  const Draft own = grpo("reward_funcs: [my.module.first, second]\nreward_weights: [1.0, 0.5]\n");
  is(own, "env", "{\"exact_answer\":{}}");
  check_says(why(own, "reward_funcs"),
             "my.module.first, second: Python inside of TRL. A function of yours in a file of its own is called as TRL "
             "calls it: env: {my_reward: {python: my_reward.py}} (docs/rewards.md)");
  check_says(why(own, "reward_weights"), "env.NAME.rewards");
  check_says(why(grpo(""), "reward_funcs"), "none is named in the file");
}

TEST_CASE("data sets by name, and mixtures") {
  is(grpo(""), "data.train", R"({"dataset_name":"ResponseDataset","data_path":"d","split":"train"})");
  is(grpo(""), "data.add_bos", "absent");
  check_says(grpo("").text("t"), "what a row is, its columns tell (docs/data.md); where several could be the answer");
  const Draft mixture = grpo(
      "datasets:\n  - {path: a, name: x, split: part, fraction: 0.5}\n  - {path: b, "
      "data_files: [c.jsonl, e.jsonl]}\n");
  is(mixture, "data.train.0.subset", "\"x\"");
  is(mixture, "data.train.0.split", "\"part\"");
  is(mixture, "data.train.1.data_path", "\"c.jsonl\"");
  is(mixture, "data.train.1.split", "absent");
  CHECK(why(mixture, "datasets.0.fraction") == "a data set counts by its rows here");
  CHECK(why(mixture, "datasets.1.data_files") == "one file or folder is a data set here");
  CHECK(
      refused("num_generations: 8\nmodel_name_or_path: m\n") ==
      "args.yaml:1:1: dataset_name: is missing, for to_dict() does not hold the data; put dataset_name=NAME behind the "
      "file");
  CHECK(refused("num_generations: 8\ndataset_name: d\n") ==
        "args.yaml:1:1: model_name_or_path: is missing, for to_dict() does not hold the model; put "
        "model_name_or_path=NAME behind the file");
}

TEST_CASE("SFT, DPO and reward models are told by their keys") {
  const std::string names =
      "model_name_or_path: m\ndataset_name: d\nper_device_train_batch_size: 2\n"
      "gradient_accumulation_steps: 4\n";
  const Draft sft = written(names + "packing: true\nmax_length: 2048\n", {{}, 3});
  is(sft, "policy.train_global_batch_size", "24");
  is(sft, "sft.max_num_epochs", "3");
  is(sft, "sft.max_num_steps", "-1");
  is(sft, "policy.max_total_sequence_length", "2048");
  is(sft, "policy.sequence_packing.enabled", "true");
  is(sft, "policy.optimizer.kwargs.lr", "2e-05");
  is(sft, "data.train", R"({"dataset_name":"ResponseDataset","data_path":"d","split":"train"})");
  is(sft, "data.add_bos", "false");  // TRL's tokens (docs/data.md)
  is(sft, "data.add_generation_prompt", "true");
  CHECK(why(sft, "dataset_text_field").empty());
  check_says(why(written(names + "dataset_text_field: content\n"), "dataset_text_field"),
             "'content': rows of text alone are known by their column 'text' here; give it that name in the rows");
  check_says(why(sft, "packing"), "a batch counts conversations here and packed rows of max_length in TRL");
  check_says(why(sft, "assistant_only_loss"), "false: TRL trains on every token");
  CHECK(why(written(names + "assistant_only_loss: true\n"), "assistant_only_loss").empty());
  is(written(names + "completion_only_loss: true\n"), "sft.only_unmask_final", "true");
  check_says(why(written(names + "packing: false\nloss_type: dft\n"), "loss_type"), "'dft' is not available");

  const Draft dpo = written(names + "beta: 0.2\nloss_type: [sigmoid, sft]\nloss_weights: [1.0, 0.5]\n");
  is(dpo, "dpo.reference_policy_kl_penalty", "0.2");
  is(dpo, "dpo.sft_loss_weight", "0.5");
  is(dpo, "data.train", R"({"dataset_name":"ResponseDataset","data_path":"d","split":"train"})");
  is(dpo, "data.add_generation_prompt", "true");
  check_says(why(written(names + "beta: 0.1\nloss_type: ipo\n"), "loss_type"),
             "'ipo' is not available; sigmoid and sft are");
  check_says(why(written(names + "beta: 0.1\nlabel_smoothing: 0.1\n"), "label_smoothing"), "of dpo's losses");
  CHECK(refused(names + "beta: 0\n") == "args.yaml:5:1: beta: got 0, wanted a number above 0");

  const Draft reward = written(names + "center_rewards_coefficient: 0.01\n");
  is(reward, "rm.max_num_epochs", "3");
  check_says(why(reward, "center_rewards_coefficient"), "the loss of rm has no such term");
  is(written(names, {hexad::compat::trl::Trainer::reward, {}}), "rm.max_num_epochs", "3");
  CHECK(refused(names) ==
        "args.yaml:1:1: nothing tells whose arguments these are; --trainer grpo, sft, dpo or reward does");
  check_says(refused(names + "desirable_weight: 1.0\n"),
             "args.yaml:5:1: desirable_weight: an argument of another trainer");
}

TEST_CASE("keys that are not translated are named where they ask for something") {
  const Draft draft = grpo(
      "use_peft: true\nlora_r: 64\ngradient_checkpointing_kwargs: {a: 1}\nzork: 3\npush_to_hub: false\n"
      "hub_strategy: every_save\nneftune_noise_alpha: 5\n");
  CHECK(why(draft, "use_peft") == "low-rank adapters are not available; all weights are trained");
  CHECK(why(draft, "lora_r") == why(draft, "use_peft"));
  CHECK(why(draft, "zork") == "no such setting is known of that system, or it has no counterpart here");
  CHECK(why(draft, "neftune_noise_alpha") == "noise on embeddings is not available");
  for (const char* quiet : {"gradient_checkpointing_kwargs", "push_to_hub", "hub_strategy"})
    CHECK(why(draft, quiet).empty());
  const Draft own = grpo("\"a\\nb: 1\": 2\n");
  CHECK(own.left_out().back().key == "a\nb: 1");
  check_says(own.text("t"), "# - a\\nb: 1: no such setting");
}

TEST_CASE("wrong types, sizes that do not fit and numbers without bounds are refused by place and name") {
  const auto says = [](const std::string& line, const std::string& words) {
    check_says(refused("num_generations: 8\nmodel_name_or_path: m\ndataset_name: d\n" + line + "\n"), words);
  };
  says("per_device_train_batch_size: many",
       "args.yaml:4:1: per_device_train_batch_size: got text 'many', wanted a number");
  says("per_device_train_batch_size: 1.5", "per_device_train_batch_size: got float 1.5, wanted an integer");
  says("per_device_train_batch_size: 0", "per_device_train_batch_size: got 0, wanted at least 1");
  says("per_device_train_batch_size: 1e12",
       "per_device_train_batch_size: got 1000000000000, wanted at most 2147483648");
  says("per_device_train_batch_size: 2000000000\ngradient_accumulation_steps: 2000000000",
       "the batch that it is a part of is larger than 2^53 samples");
  says("per_device_train_batch_size: 3", "num_generations: got 8, wanted a divisor of the generation batch 3");
  says("generation_batch_size: 12",
       "generation_batch_size: got 12, wanted a multiple of per_device_train_batch_size x "
       "processes = 8");
  says("use_vllm: 3", "use_vllm: got int 3, wanted true or false");
  says("loss_type: {a: 1}", "loss_type: got");
  says("learning_rate: .inf", "learning_rate: got");
  says("save_steps: -1", "save_steps: got -1, wanted a number above 0");
  says("num_train_epochs: 0", "num_train_epochs: got 0, wanted a number above 0");
  says("datasets: [{name: x}]", "datasets.0.path: is missing, wanted the name or path of a data set");
  CHECK(refused("num_generations: 1\nmodel_name_or_path: m\n").find("num_generations: got 1, wanted at least 2") !=
        std::string::npos);
}
