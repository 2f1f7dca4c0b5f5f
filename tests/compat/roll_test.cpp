// ROLL's form: what comes out of it, and what is said about what does not.
#include "compat/roll/roll.hpp"
#include "app/config/commands.hpp"
#include "compat/roll/pass.hpp"
#include "core/config/typed/run_config.hpp"
#include "lib/yaml/file.hpp"
#include "tests/compat/roll_file.hpp"

#include <cstdlib>
#include <sstream>

using namespace compat_test;
using hexad::config::Resolved;
using hexad::config::RunConfig;
using hexad::yaml::Node;

namespace {

std::filesystem::path source() {
  const char* folder = std::getenv("HEXAD_SOURCE_DIR");
  return folder ? folder : ".";
}

Resolved example(const std::string& name, const Overrides& overrides = {}) {
  return hexad::config::resolve(source() / "tests/compat/data/roll" / (name + ".yaml"), overrides,
                                hexad::compat::all());
}

RunConfig run_of(const std::string& name, const Overrides& overrides = {}) {
  return hexad::config::run_config(example(name, overrides));
}

void flatten(const Node& node, const std::string& path, std::map<std::string, std::string>& out) {
  if (!node.is_map() || node.entries().empty()) {
    out[path] = node.to_json().dump();
    return;
  }
  for (const auto& [name, value] : node.entries()) flatten(value, path.empty() ? name : path + "." + name, out);
}

const std::string& kFile = kRollFile;

const std::string kSettings = "++actor_train.strategy_args.strategy_config";

}  // namespace

TEST_CASE("the quickstart in ROLL's form is the quickstart") {
  std::map<std::string, std::string> ours, theirs;
  flatten(hexad::config::resolve(source() / "configs/quickstart.yaml").root, "", ours);
  const Resolved rolled = hexad::config::resolve(source() / "configs/quickstart_roll.yaml", {}, hexad::compat::all());
  flatten(rolled.root, "", theirs);
  ours.erase("policy.megatron_cfg.enabled");  // false, which the translation leaves out
  ours.erase("policy.tokenizer.name");        // the model, as when it is absent
  ours.erase("policy.dtensor_cfg.enabled"), theirs.erase("policy.dtensor_cfg.enabled");  // true when absent
  CHECK(ours.size() == theirs.size());
  for (const auto& each : ours)
    CHECK_MESSAGE(theirs[each.first] == each.second, each.first << ": " << theirs[each.first]);
  CHECK(rolled.notices.empty());
}

TEST_CASE("a Megatron run comes to the megatron backend") {
  const Resolved resolved = example("rlvr_megatron");
  const RunConfig run = hexad::config::run_config(resolved);
  CHECK(run.policy.backend == "megatron");
  const Node& megatron = resolved.root.at("policy.megatron_cfg");
  CHECK(megatron.as_int("tensor_model_parallel_size") == 2);
  CHECK(megatron.as_int("expert_tensor_parallel_size") == 2);
  CHECK(megatron.as_int("expert_model_parallel_size") == 4);
  CHECK(megatron.as_int("virtual_pipeline_model_parallel_size") == 2);
  CHECK(megatron.as_bool("sequence_parallel"));
  CHECK(megatron.as_bool("activation_checkpointing"));
  CHECK(megatron.as_string("recompute_granularity") == "selective");
  CHECK(megatron.as_strings("recompute_modules") == std::vector<std::string>{"moe"});
  CHECK(megatron.as_double("optimizer.lr") == 1e-6);
  CHECK(megatron.as_bool("distributed_data_parallel_config.grad_reduce_in_fp32"));
  CHECK(!megatron.as_bool("freeze_moe_router"));
  // 1 sample x 32 micro-batches x 2 data-parallel ranks of 16.
  CHECK(run.policy.train_global_batch_size == 64);
  CHECK(run.cluster.num_nodes == 2);
  CHECK(run.cluster.gpus_per_node == 8);
  CHECK(run.policy.sequence_packing.enabled);
  CHECK(run.policy.make_sequence_length_divisible_by == 8);
  CHECK(run.policy.max_total_sequence_length == 4096);
  CHECK(run.policy.generation.max_new_tokens == 3072);
  CHECK(run.grpo.adv_estimator.name == "reinforce_plus_plus");
  CHECK(!run.grpo.adv_estimator.minus_baseline);
  CHECK(run.grpo.overlong_filtering);
  CHECK(run.grpo.advantage_clip_low == -2.0);
  CHECK(resolved.root.as_double("loss_fn.ratio_clip_c") == 1.4);
  CHECK(run.loss_fn.reference_policy_kl_penalty == 0.01);
  CHECK(!resolved.root.as_bool("loss_fn.token_level_loss"));
  CHECK(run.checkpointing.checkpoint_dir == "./output/models/moe-rlvr");
  CHECK(run.data.train.size() == 2);
  CHECK(run.data.train[1].data_path == "data/geometry.jsonl");
  CHECK(run.data.train[1].env_name == "math");
  CHECK(run.data.train[1].output_key == "ground_truth");
  CHECK(run.data.validation.size() == 1);
  CHECK(has_notice(resolved, "difficulty_mask", "stay in the loss"));
  CHECK(has_notice(resolved, "actor_infer.device_mapping", "every one of the 16 ranks"));
  CHECK(has_notice(resolved, "actor_infer.strategy_args.strategy_name", "'vllm' is the native generator here"));
  CHECK(has_notice(resolved, "actor_train.strategy_args.strategy_config.moe_permute_fusion", "fused kernel"));
  CHECK(has_notice(resolved, "validation.generating_args.{temperature, top_p}", "validation samples as training does"));
}

TEST_CASE("a DeepSpeed run comes to the dtensor backend, presets included") {
  const RunConfig run = run_of("rlvr_deepspeed");
  CHECK(run.policy.backend == "dtensor");
  const Node dtensor = example("rlvr_deepspeed").root.at("policy.dtensor_cfg");
  CHECK(dtensor.at("reshard_after_forward").is_null());
  CHECK(dtensor.as_bool("cpu_offload"));
  CHECK(dtensor.as_bool("activation_checkpointing"));
  CHECK(run.policy.train_global_batch_size == 128);
  CHECK(run.policy.logprob_batch_size == 4);  // 5 does not divide the 32 samples of a rank
  CHECK(run.cluster.gpus_per_node == 4);
  CHECK(run.grpo.adv_estimator.name == "grpo");
  CHECK(!run.grpo.adv_estimator.use_leave_one_out_baseline);
  CHECK(run.data.train[0].input_key == "question");
  CHECK(run.policy.scheduler[0]["kwargs"]["total_iters"] == 10);
  CHECK(run.policy.scheduler[1]["name"] == "torch.optim.lr_scheduler.CosineAnnealingLR");
  CHECK(run.policy.scheduler[2]["milestones"][0] == 10);
  const Node stage2 = example("rlvr_deepspeed", {"actor_train.strategy_args.strategy_config=${deepspeed_zero2}"})
                          .root.at("policy.dtensor_cfg");
  CHECK(!stage2.as_bool("reshard_after_forward"));
  CHECK(!stage2.as_bool("cpu_offload"));
}

TEST_CASE("the form is recognised by its top level") {
  const auto is_roll = [](const std::string& text) {
    return hexad::config::roll::is_roll(hexad::yaml::read_text(text, "t"));
  };
  CHECK(is_roll("actor_train: {}"));
  CHECK(is_roll("actor_infer: {}"));
  CHECK(!is_roll("policy: {}\nactor_train: {}"));
  CHECK(!is_roll("grpo: {}"));
}

TEST_CASE("a file of another pipeline is refused by that alone, with what to write in its place") {
  const auto says = [](const std::string& text, const std::string& keys, const std::string& words) {
    const std::string error = resolve_error({}, text);
    check_says(error, keys + ": ROLL's " + words);
    CHECK_MESSAGE(error.find("ROLL has none of this name") == std::string::npos, error);
    CHECK_MESSAGE(std::ranges::count(error, '\n') == 0, error);
  };
  says("prompt_key: instruction\nquery_key: input\nresponse_key: output\nsft_train: {model_args: {}}\n",
       "sft_train, prompt_key, query_key, response_key",
       "supervised pipeline is not available in this version: of ROLL's files those of its RLVR and DPO pipelines are "
       "read. Nearest: write the run with a block sft (docs/supervised.md)");
  says(kFile + "train_env_manager: {max_env_num_per_worker: 1}\nreward_normalization: {grouping: batch}\n",
       "train_env_manager, reward_normalization", "agentic pipeline is not available");
  says("student_pretrain: a\nteacher_pretrain: b\nlogits_topk: 64\nstudent: {}\nteacher: {}\n",
       "student, student_pretrain, teacher_pretrain, teacher, logits_topk", "distillation pipeline is not available");
  says("custom_envs: {Sokoban: {env_type: sokoban}}\nmax_tokens_per_step: 64\n", "custom_envs, max_tokens_per_step",
       "agentic pipeline is not available");
  // Of its parts too, which a run inherits from.
  says("max_actions_per_traj: 10\nenv_manager_cls: a.b.TrajEnvManager\ngem_math: {Own: {env_type: own}}\n",
       "env_manager_cls, max_actions_per_traj", "agentic pipeline is not available");
  // What the parents hold is not read, nor are values looked at: of many files of ROLL's neither can be here.
  const Files files({{"main.yaml", "defaults: envs.yaml\nname: x-${now:%H}\ntrain_env_manager: {}\n"},
                     {"envs.yaml", "custom_envs: {Sokoban: {grid_lookup: {0: W}}}\n"}});
  check_says(message_of([&] { hexad::config::resolve(files / "main.yaml", {}, hexad::compat::all()); }),
             "train_env_manager: ROLL's agentic pipeline is not available");
  // A key of theirs in a file of RLVR means nothing, and is not called unknown.
  CHECK(has_notice(resolve_text({}, kFile + "chosen_key: chosen\nsft_train: null\n"), "chosen_key",
                   "ROLL's DPO pipeline reads it, RLVR does not"));
  const Files heir({{"main.yaml", "defaults: rlvr.yaml\nchosen_key: chosen\nactor_train: {}\n"}, {"rlvr.yaml", kFile}});
  CHECK(has_notice(hexad::config::resolve(heir / "main.yaml", {}, hexad::compat::all()), "chosen_key",
                   "ROLL's DPO pipeline reads it, RLVR does not"));
}

TEST_CASE("a device_mapping of its own puts the generator on the last ranks") {
  const auto run_of = [](const Overrides& overrides) {
    return hexad::config::run_config(resolve_text(overrides, kFile));
  };
  RunConfig run = run_of({"actor_infer.device_mapping='list(range(4,8))'"});
  CHECK_FALSE(run.policy.generation.colocated.enabled);
  CHECK(run.cluster.gpus_per_node == 8);
  CHECK(run.cluster.num_nodes == 1);
  CHECK(hexad::config::generation_ranks(run) == 4);
  run = run_of({"actor_train.device_mapping='list(range(0,8))'", "actor_infer.device_mapping='list(range(8,24))'"});
  CHECK(run.cluster.num_nodes == 3);
  CHECK(run.cluster.gpus_per_node == 8);
  CHECK(hexad::config::generation_ranks(run) == 16);
  run = run_of({});
  CHECK(run.policy.generation.colocated.enabled);
}

TEST_CASE("mistakes are named by the keys and lines of the file, once each") {
  const std::string wrong = resolve_error({}, "rollout_batch_size: abc\n" + kFile.substr(kFile.find('\n') + 1));
  CHECK(wrong == "a.yaml:1:1: error: rollout_batch_size: got text 'abc', wanted an integer");
  CHECK(resolve_error({}, "rolout_batch_size: 4\n" + kFile)
            .starts_with("a.yaml:1:1: error: rolout_batch_size: unknown key; did you mean rollout_batch_size?"));
  // Rules between NeMo-RL's keys name the place in this file too.
  check_says(
      resolve_error({"actor_train.training_args.gradient_accumulation_steps=3"}, kFile),
      "override 'actor_train.training_args.gradient_accumulation_steps=3': error: policy.train_global_batch_size");
  check_says(resolve_error({}, "whatever: 4\n" + kFile), "whatever: unknown key; ROLL has none of this name");
  CHECK(resolve_error({}, "whatever: 4\nseed: ${whatever}\n" + kFile) == "");  // a variable of the file's own
}

TEST_CASE("what cannot run is refused, one line each") {
  struct Refused {
    Overrides overrides;
    std::string message;
  };
  const std::vector<Refused> cases = {
      {{"~adv_estimator"}, "adv_estimator: is missing, and ROLL's default gae needs a critic"},
      {{"adv_estimator=gae"},
       "adv_estimator: a critic (adv_estimator: gae) is not available in this version; nearest: adv_estimator: grpo "
       "or"},
      {{"++adv_estimator=reinforce"},
       "norm_mean_type: normalisation by the mean over nothing and the deviation over nothing without "
       "whiten_advantages is not available in this version; nearest: norm_mean_type: group"},
      {{"++whiten_advantages=true"},
       "whiten_advantages: whitening of advantages that the group's deviation has normalised is not available"},
      {{"++ppo_epochs=2"}, "ppo_epochs: training more than once on a rollout is not available"},
      {{"++async_generation_ratio=1"},
       "async_generation_ratio: asynchronous generation on devices that train is not available"},
      {{"++loss_agg_mode=seq-mean-token-sum"},
       "loss_agg_mode: a loss that sums the tokens of a sample (seq-mean-token-sum) is not available in this version; "
       "wanted token-mean, seq-mean-token-mean"},
      {{"++add_token_level_kl=true"}, "add_token_level_kl: a KL penalty in the rewards with its controller"},
      {{"~response_length"}, "response_length: is missing"},
      {{"++sequence_length=16"}, "sequence_length: got 16, wanted more than prompt_length 16; nearest: 17"},
      {{"~pretrain"}, "pretrain: is missing: give the Hugging Face directory of the model"},
      {{"actor_train.device_mapping='range(4'"},
       "actor_train.device_mapping: got text 'range(4', wanted different device ids"},
      {{"actor_infer.device_mapping='list(range(2,6))'"},
       "actor_infer.device_mapping: generation on devices of which only some train is not available in this version; 2 "
       "of "
       "the 4 devices are actor_train's and the others are not, wanted all of them or none"},
      {{"actor_train.device_mapping='list(range(0,4))'", "actor_infer.device_mapping='list(range(8,12))'"},
       "4 devices that train and 4 that generate lie on several nodes of num_gpus_per_node 8, wanted whole nodes"},
      {{"actor_train.device_mapping='list(range(0,12))'", "actor_infer.device_mapping='list(range(0,12))'"},
       "12 devices over several nodes of num_gpus_per_node 8, wanted whole nodes; nearest: list(range(0,16))"},
      {{"actor_train.strategy_args.strategy_name=megatron_tran"},
       "got 'megatron_tran', wanted one of megatron_train, fsdp2_train, deepspeed_train, did you mean "
       "'megatron_train'?"},
      {{kSettings + ".tensor_model_parallel_siz=2"},
       "actor_train.strategy_args.strategy_config.tensor_model_parallel_siz: unknown key; did you mean "
       "tensor_model_parallel_size?"},
      {{kSettings + ".tensor_model_parallel_size=3"}, "policy.megatron_cfg.tensor_model_parallel_size"},
      {{kSettings + ".overlap_param_gather=true"},
       "gathering parameters during the forward pass, which ROLL refuses too"},
      {{kSettings + ".ckpt_format=legacy", kSettings + ".expert_tensor_parallel_size=1"},
       "ckpt_format: legacy does not hold experts of expert_tensor_parallel_size 1 under tensor_model_parallel_size 2"},
      {{"rollout_batch_size=7"},
       "rollout_batch_size: got 7, wanted a multiple of the 2 data-parallel ranks; nearest: 6 or 8"},
      {{"++actor_train.use_sequence_packing=true"}, "max_packed_sequence_length_train: is missing"},
      {{"++actor_train.use_sequence_packing=true",
        "++actor_train.sequence_packing_args={max_packed_sequence_length_train: 31, "
        "max_packed_sequence_length_forward: 32}"},
       "max_packed_sequence_length_train: got 31, wanted at least the longest sequence, 32 tokens; nearest: 32"},
      {{"++actor_train.use_dynamic_batching_in_train=true", "++actor_train.max_tokens_per_microbatch_in_train=64",
        "++actor_train.max_tokens_per_microbatch_in_infer=64", "++actor_train.sequence_length_round_in_train=3"},
       "sequence_length_round_in_train: got 3, wanted a multiple of tensor_model_parallel_size 2; nearest: 4"},
      {{"++actor_train.model_args.lora_target=all"}, "actor_train.model_args.lora_target: LoRA is not available"},
      {{"++actor_train.router_replay.mode=R4"},
       "actor_train.router_replay.mode: got 'R4', wanted one of disable, R2, R3"},
      {{"++reference.model_args.model_name_or_path=other"},
       "got 'other': a reference policy other than the trained model"},
      {{"rewards.math_rule.worker_cls=roll.LLMJudgeRewardWorker"},
       "rewards.math_rule.worker_cls: a reward by a model that judges (LLMJudgeRewardWorker) is not available in this "
       "version; nearest: a reward program"},
      {{"++rewards.other.worker_cls=last_number"},
       "rewards.{math_rule, other}.worker_cls: a reward chosen by the tag of a row is not available"},
      {{"++actor_train.data_args.domain_interleave_probs={math: 1.0}"}, "there is no rewards.math"},
      {{"++rewards.math_rule.query_filter_config.type=mean_filter"}, "a filter of samples by reward is not available"},
      {{"++actor_infer.generating_args.num_beams=4"},
       "actor_infer.generating_args.num_beams: beam search is not available"},
      {{"~actor_train.data_args.file_name"}, "actor_train.data_args.file_name: is missing"},
      {{"++actor_train.training_args.lr_scheduler_type=linear", "++actor_train.training_args.warmup_steps=500"},
       "warmup_steps: got 500, wanted fewer than max_steps 500; nearest: 499"},
  };
  CHECK(resolve_error({}, kFile) == "");
  for (const Refused& refused : cases) {
    CAPTURE(refused.overrides.front());
    check_says(resolve_error(refused.overrides, kFile), refused.message);
  }
}

TEST_CASE("what ROLL repairs is repaired, with a line") {
  const std::string settings = "actor_train.strategy_args.strategy_config";
  const Resolved one =
      resolve_text({kSettings + ".tensor_model_parallel_size=1", kSettings + ".sequence_parallel=true"}, kFile);
  CHECK(has_notice(one, settings + ".sequence_parallel", "false: there is no tensor parallelism"));
  const Resolved both = resolve_text({kSettings + ".expert_model_parallel_size=2"}, kFile);
  CHECK(has_notice(both, settings + ".sequence_parallel", "true: tensor and expert parallelism together need it"));
  CHECK(both.root.as_bool("policy.megatron_cfg.sequence_parallel"));
  const Resolved flex = resolve_text({kSettings + ".moe_token_dispatcher_type=flex"}, kFile);
  CHECK(has_notice(flex, settings + ".moe_token_dispatcher_type", "alltoall: the same tokens"));
  CHECK(flex.root.as_string("policy.megatron_cfg.moe_token_dispatcher_type") == "alltoall");
}

TEST_CASE("every key is answered: one that has no part in a run gets a line") {
  const Resolved resolved = resolve_text({"++actor_infer.training_args.learning_rate=1",
                                          "++difficulty_low_threshold=0.1", "++rewards.math_rule.reward_type=soft"},
                                         kFile);
  CHECK(has_notice(resolved, "actor_infer.training_args.learning_rate, rewards.math_rule.reward_type",
                   "not read: no part of this run takes it"));
}

TEST_CASE("overrides take ROLL's keys and NeMo-RL's, and `hexad` wins over the translation") {
  const RunConfig run = hexad::config::run_config(resolve_text(
      {"rollout_batch_size=16", "grpo.max_num_steps=3", "+hexad.grpo.seed=9", "++policy.precision=float32"}, kFile));
  CHECK(run.grpo.num_prompts_per_step == 16);
  CHECK(run.grpo.max_num_steps == 3);
  CHECK(run.grpo.seed == 9);
  CHECK(run.policy.precision == "float32");
  check_says(resolve_error({"rolout_batch_size=4"}, kFile),
             "there is no key rolout_batch_size; did you mean rollout_batch_size?");
  check_says(resolve_error({}, kFile + "hexad: {grpo: {sed: 4}}\n"), "grpo.sed: unknown key; did you mean grpo.seed?");
}

TEST_CASE("what ROLL gives a tracker goes to the tracker, but for the user's key") {
  const Resolved wandb = resolve_text(
      {}, kFile + "track_with: wandb\ntracker_kwargs: {project: mine, tags: [a, b], api_key: s3cret, log_dir: x}\n");
  const Node& logger = wandb.root.at("logger");
  CHECK(logger.as_bool("wandb_enabled"));
  CHECK(logger.as_string("wandb.project") == "mine");
  CHECK(logger.as_strings("wandb.tags") == std::vector<std::string>{"a", "b"});
  CHECK(logger.find("wandb.api_key") == nullptr);
  CHECK(has_notice(wandb, "tracker_kwargs",
                   "api_key, log_dir: not used: metrics are in the log folder, and a service's key stands in the "
                   "environment (docs/trackers.md)"));
  const Resolved events = resolve_text({}, kFile + "track_with: tensorboard\ntracker_kwargs: {log_dir: x}\n");
  CHECK(events.root.at("logger").as_bool("tensorboard_enabled"));
  CHECK(has_notice(events, "tracker_kwargs", "log_dir: not used"));
}

TEST_CASE("config show prints NeMo-RL's keys") {
  const Files files("a.yaml", kFile);
  std::ostringstream out, errors;
  CHECK(hexad::config::config_show(files / "a.yaml", {}, false, out, errors, false, hexad::compat::all()) == 0);
  check_says(out.str(), "num_prompts_per_step: 8");
  CHECK(out.str().find("rollout_batch_size") == std::string::npos);
  std::ostringstream verdict;
  const auto problems = hexad::config::check(
      hexad::config::load_with_defaults(files / "a.yaml", {"rollout_batch_size=x"}, hexad::compat::all()));
  CHECK(hexad::config::print_problems(problems, files / "a.yaml", true, verdict) == 2);
  check_says(verdict.str(), "\"key\":\"rollout_batch_size\"");
}

TEST_CASE("device_mapping is read without Python") {
  const auto devices = [](const std::string& text) { return hexad::config::roll::device_mapping(Node(text)); };
  using Ids = std::vector<int64_t>;
  CHECK(devices("list(range(0,3))") == Ids{0, 1, 2});
  CHECK(devices(" list( range(0, 2) ) + list(range(14,16))") == Ids{0, 1, 14, 15});
  CHECK(devices("range(0,8,4)") == Ids{0, 4});
  CHECK(devices("[3, 1]") == Ids{3, 1});
  CHECK(devices("list([0,1])") == Ids{0, 1});
  for (const char* wrong : {"", "list(range(0,3)", "[0,0]", "[-1]", "range(3,0)", "range(0,9999999999)", "[1 2", "[a]",
                            "__import__('os')", "range(0,4,0)", "range()", "[0]+"}) {
    CHECK_MESSAGE(!devices(wrong), wrong);
  }
}

TEST_CASE("numbers out of range are said once and break nothing") {
  for (const char* key :
       {"rollout_batch_size", "prompt_length", "response_length", "num_gpus_per_node", "max_steps",
        "actor_train.training_args.per_device_train_batch_size", "actor_train.infer_batch_size",
        "actor_train.training_args.gradient_accumulation_steps", "actor_train.training_args.warmup_ratio",
        "actor_train.strategy_args.strategy_config.tensor_model_parallel_size",
        "actor_train.strategy_args.strategy_config.context_parallel_size"}) {
    for (const std::string& value :
         std::vector<std::string>{"0", "-3", "9000000000000000", "many", "[]", "{}", ".nan"}) {
      INFO(key << " = " << value);
      const std::string said = resolve_error({fmt::format("++{}={}", key, value)}, kFile);
      if (value == "many") check_says(said, "got text 'many'");
    }
  }
}
