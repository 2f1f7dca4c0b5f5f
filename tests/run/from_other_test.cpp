// What `hexad config from-trl` and `from-verl` write is a configuration that `hexad config check` takes, with the
// plugins that come with the engine.
#include <doctest/doctest.h>

#include "tests/support/toy/program.hpp"

using toy::Ended;
using toy::TempDir;

namespace {

using Arguments = std::vector<std::string>;

// Of 64 positions, and a server of vLLM starts for no more.
std::string model() { return (toy::source_dir() / "configs/quickstart_model").string(); }

// Writes the config of `command`, and has it checked.
void writes_valid(const std::string& command, const std::string& file, const Arguments& more) {
  const TempDir dir;
  const std::string in = dir.write("in.yaml", file).string(), out = (dir / "out.yaml").string();
  Arguments arguments = {"config", command, in, "--out", out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  INFO(command << " " << file);
  const Ended written = toy::run(arguments);
  CHECK_MESSAGE(written.code == 0, written.err);
  CHECK(written.out.empty());
  const Ended check = toy::run({"config", "check", out});
  CHECK_MESSAGE(check.code == 0, check.out << toy::read_text(out));
}

void trl(const std::string& file, const Arguments& more = {}) {
  writes_valid("from-trl", "model_name_or_path: " + model() + "\ndataset_name: rows.jsonl\n" + file, more);
}

void verl(const Arguments& more) {
  Arguments settings = {"actor_rollout_ref.model.path=" + model(), "data.train_files=rows.jsonl",
                        "data.max_prompt_length=32", "data.max_response_length=32"};
  settings.insert(settings.end(), more.begin(), more.end());
  writes_valid("from-verl", "algorithm: {adv_estimator: grpo}\n", settings);
}

}  // namespace

TEST_CASE("configs written of TRL's arguments are valid") {
  const std::string group = "num_generations: 8\ngradient_accumulation_steps: 4\n";
  trl(group);
  trl(group + "steps_per_generation: 6\nnum_iterations: 2\nmax_steps: 100\nwarmup_steps: 0.1\nbeta: 0.04\n",
      {"--processes", "2"});
  trl(group +
      "loss_type: cispo\nepsilon_high: 5.0\nreward_funcs: accuracy_reward\neval_strategy: steps\neval_steps: 4\n");
  trl(group + "loss_type: grpo\nimportance_sampling_level: sequence\nscale_rewards: false\noutput_dir: ~/out\n");
  trl(group + "loss_type: dr_grpo\nmask_truncated_completions: true\nuse_peft: true\ndelta: 1.5\n", {"max_steps=10"});
  trl(group +
      "use_vllm: true\nvllm_importance_sampling_mode: token_truncate\nmax_steps: 3\nlr_scheduler_type: cosine\n"
      "vllm_max_model_length: 64\nmax_completion_length: 32\n");
  trl("packing: true\nmax_length: 64\nmax_steps: 50\n", {"--processes", "4"});
  trl("beta: 0.1\nloss_type: [sigmoid, sft]\n");
  trl("learning_rate: 1.0e-5\neval_strategy: steps\neval_steps: 10\n", {"--trainer", "reward"});
}

TEST_CASE("configs written of verl's are valid") {
  const std::string actor = "actor_rollout_ref.actor.", rollout = "actor_rollout_ref.rollout.";
  verl({rollout + "n=8", rollout + "tensor_model_parallel_size=1", actor + "ppo_micro_batch_size_per_gpu=4"});
  verl({rollout + "n=8", rollout + "name=vllm", actor + "use_kl_loss=true", actor + "ulysses_sequence_parallel_size=2",
        actor + "use_dynamic_bsz=true", "trainer.save_freq=10", "trainer.total_training_steps=100",
        actor + "optim.lr_scheduler_type=cosine", actor + "optim.lr_warmup_steps=10"});
  verl({rollout + "n=8", actor + "strategy=megatron", actor + "megatron.tensor_model_parallel_size=2",
        actor + "ppo_micro_batch_size_per_gpu=2", rollout + "name=vllm"});
  verl({"algorithm.adv_estimator=reinforce_plus_plus", "algorithm.use_kl_in_reward=true", rollout + "n=1"});
  verl({"algorithm.adv_estimator=rloo", rollout + "n=4", actor + "loss_agg_mode=seq-mean-token-mean",
        actor + "policy_loss.loss_mode=gspo"});
}
