// Every recipe of configs/recipes trains, made small enough for a CPU: its algorithm, its batching and its layout are
// its own.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/run/first_party.hpp"
#include "tests/run/run_steps.hpp"

using first_party::source;
using toy::TempDir;

namespace {

struct Recipe {
  std::string name;
  int ranks = 1;
  std::vector<std::string> layout;  // that fits so many ranks
  std::string metric;               // that the recipe's own settings give; empty: none but those of all
  std::string algorithm = "grpo";   // whose block it has

  bool samples() const { return algorithm == "grpo"; }
};

const std::vector<Recipe>& recipes() {
  static const std::string megatron = "policy.megatron_cfg.";
  static const std::vector<Recipe> all = {
      {"grpo_math_1B", 1, {}, ""},
      {"grpo_math_8B", 2, {}, ""},
      {"grpo_math_8B_megatron", 2, {}, ""},
      {"grpo_math_70B_megatron",
       4,
       {megatron + "tensor_model_parallel_size=2", megatron + "pipeline_model_parallel_size=2",
        "policy.generation.native_cfg.tensor_parallel_size=2"},
       ""},
      {"deepscaler_1.5B_8K", 1, {}, ""},
      {"deepscaler_1.5B_16K", 2, {}, ""},
      {"deepscaler_1.5B_24K", 2, {}, ""},
      {"dapo_qwen2.5_7B",
       2,
       {"policy.dtensor_cfg.context_parallel_size=2", "grpo.reward_shaping.max_response_length=2",
        "grpo.reward_shaping.overlong_buffer_length=1"},
       "train/dynamic_sampling_num_gen_batches"},
      {"gspo_deepscaler_1.5B_8K", 1, {}, ""},
      {"dr_grpo_math_1B", 1, {}, ""},
      {"cispo_math_1B", 1, {}, ""},
      {"rloo_math_1B", 1, {}, ""},
      {"reinforce_plus_plus_math_1B", 1, {}, ""},
      {"grpo_sliding_puzzle",
       1,
       {"~data.train.kind",
        "data.train={dataset_name: sliding_puzzle, length: 3, size: 64, validation_size: 16, env_name: "
        "sliding_puzzle_game}",
        "env={sliding_puzzle_game: {plugin: sliding_puzzle, plugin_config: {max_moves: 3}}}",
        "policy.max_total_sequence_length=512", "++data.max_input_seq_length=256", "grpo.max_rollout_turns=3"},
       "train/reward/solved"},
      {"sft_llama3.2_1B", 1, {}, "validation/val_loss", "sft"},
      {"dpo_llama3.2_1B", 1, {}, "validation-default/loss", "dpo"},
      {"rm_llama3.2_1B", 1, {}, "validation-default/loss", "rm"},
  };
  return all;
}

// The quickstart's model and puzzle, four prompts of four samples a step, two steps.
std::vector<std::string> tiny(const Recipe& recipe) {
  std::vector<std::string> overrides = {
      "policy.model_name=configs/quickstart_model",
      "++policy.random_init_seed=7",
      "++policy.precision=float32",
      "policy.max_total_sequence_length=16",
      "++policy.train_global_batch_size=16",
      "++policy.generation.max_new_tokens=2",
      "grpo.num_prompts_per_step=4",
      "grpo.num_generations_per_prompt=4",
      "grpo.max_num_steps=2",
      "grpo.val_period=2",
      "grpo.max_val_samples=8",
      "grpo.val_batch_size=8",
      "data.default=null",
      "data.validation=null",
      "data.train={dataset_name: puzzle, kind: successor, size: 256, validation_size: 16, env_name: exact_answer, "
      "processor: math_hf_data_processor}",
      "++data.max_input_seq_length=14",
      "env={exact_answer: {}}",
      "++checkpointing.save_period=2",
      fmt::format("++cluster.gpus_per_node={}", recipe.ranks),
      "++cluster.num_nodes=1",
      "++cluster.device=cpu"};
  return first_party::both(overrides, recipe.layout);
}

// The same model on what it can read, sixteen examples a step, two steps.
std::vector<std::string> tiny_supervised(const Recipe& recipe) {
  const std::string pairs = "{dataset_name: BinaryPreferenceDataset, data_path: configs/quickstart_data/preferences",
                    puzzle = "{dataset_name: puzzle, kind: successor, size: 256, validation_size: 16}";
  const bool sft = recipe.algorithm == "sft";
  return {"policy.model_name=configs/quickstart_model",
          "++policy.random_init_seed=7",
          "++policy.precision=float32",
          "++policy.tokenizer.chat_template=null",
          "policy.max_total_sequence_length=16",
          "policy.train_global_batch_size=16",
          fmt::format("{}.max_num_steps=2", recipe.algorithm),
          fmt::format("{}.val_period=2", recipe.algorithm),
          fmt::format("{}.val_batches=1", recipe.algorithm),
          fmt::format("{}.val_global_batch_size=8", recipe.algorithm),
          "data.train=" + (sft ? puzzle : pairs + ".jsonl}"),
          "data.validation=" + (sft ? "null" : pairs + "_validation.jsonl}"),
          "checkpointing.save_period=2",
          "++cluster.device=cpu"};
}

toy::Ended check(const std::string& name, const std::vector<std::string>& overrides) {
  std::vector<std::string> arguments = {"config", "check", source() + "/configs/recipes/" + name + ".yaml"};
  return toy::run(first_party::both(arguments, overrides));
}

}  // namespace

TEST_CASE("every recipe is in the list below, and valid as it stands") {
  std::set<std::string> files, listed;
  for (const auto& entry : toy::fs::directory_iterator(source() + "/configs/recipes"))
    files.insert(entry.path().stem());
  for (const Recipe& recipe : recipes()) {
    listed.insert(recipe.name);
    const toy::Ended run = check(recipe.name, {});
    CHECK_MESSAGE(run.code == 0, run.out << run.err);
  }
  CHECK(files == listed);
}

TEST_CASE("overrides of NeMo-RL's announcement work on every GRPO recipe") {
  const std::vector<std::string> common = {
      "loss_fn.use_importance_sampling_correction=True",
      "policy.sequence_packing.enabled=True",
      "policy.make_sequence_length_divisible_by=8",
      "policy.generation.vllm_cfg.tensor_parallel_size=8",
      "cluster.gpus_per_node=8",
      "cluster.num_nodes=4",
      "grpo.num_prompts_per_step=128",
      "logger.wandb_enabled=True",
  };
  const std::vector<std::string> dtensor = {"policy.dtensor_cfg.enabled=True",
                                            "policy.dtensor_cfg.tensor_parallel_size=8",
                                            "policy.dtensor_cfg.sequence_parallel=True"},
                                 megatron = {"policy.megatron_cfg.enabled=True",
                                             "policy.megatron_cfg.tensor_model_parallel_size=8",
                                             "policy.megatron_cfg.sequence_parallel=True"};
  for (const Recipe& recipe : recipes()) {
    if (!recipe.samples()) continue;
    const bool of_megatron = recipe.name.ends_with("_megatron");
    const toy::Ended run = check(recipe.name, first_party::both(common, of_megatron ? megatron : dtensor));
    CHECK_MESSAGE(run.code == 0, run.out << run.err);
  }
}

TEST_CASE("every GRPO recipe trains, validates and saves") {
  for (const Recipe& recipe : recipes()) {
    if (!recipe.samples()) continue;
    CAPTURE(recipe.name);
    const TempDir dir;
    const toy::Ended run =
        toy::run(first_party::train(source() + "/configs/recipes/" + recipe.name + ".yaml", dir, tiny(recipe)));
    REQUIRE_MESSAGE(run.code == 0, recipe.name << ": " << run.out << run.err);
    const auto steps = first_party::steps_of(dir);
    REQUIRE(steps.size() == 2);
    for (const nlohmann::json& step : steps) {
      for (const char* metric : {"train/loss", "train/grad_norm", "train/reward"})
        CHECK_MESSAGE(std::isfinite(step.at(metric).get<double>()), metric);
      CHECK(step.at("train/global_valid_seqs") == 16);
      if (!recipe.metric.empty()) CHECK_MESSAGE(step.contains(recipe.metric), recipe.metric);
    }
    CHECK(steps[1].contains("validation/accuracy"));
    CHECK(toy::fs::exists(dir / "checkpoints/step_2/policy/weights"));
  }
}

TEST_CASE("every supervised recipe trains, validates and saves") {
  for (const Recipe& recipe : recipes()) {
    if (recipe.samples()) continue;
    CAPTURE(recipe.name);
    const TempDir dir;
    const toy::Ended run = toy::run(
        first_party::train(source() + "/configs/recipes/" + recipe.name + ".yaml", dir, tiny_supervised(recipe)));
    REQUIRE_MESSAGE(run.code == 0, recipe.name << ": " << run.out << run.err);
    int steps = 0;
    for (const nlohmann::json& line : first_party::lines_of(dir / "logs/exp_001/metrics.jsonl")) {
      if (line.contains("train/loss")) {
        ++steps;
        CHECK(std::isfinite(line.at("train/loss").get<double>()));
        CHECK(line.at("train/grad_norm").get<double>() > 0);
      }
      if (line.at("step") == 2) CHECK(std::isfinite(line.at(recipe.metric).get<double>()));
    }
    CHECK(steps == 2);
    CHECK(toy::fs::exists(dir / "checkpoints/step_2/policy/weights"));
  }
}
