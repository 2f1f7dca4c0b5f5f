// What `config check` and `train` refuse alike before anything starts, and how they say it.
#include <doctest/doctest.h>

#include "tests/support/toy/program.hpp"

using plugin_test::contains;
using toy::Ended;
using toy::TempDir;

namespace {

using Arguments = std::vector<std::string>;

struct Toy {
  TempDir dir;
  std::string config = dir.write("toy.yaml", toy::config_text(dir.path())).string();

  Ended run(Arguments command, const Arguments& overrides) const {
    command.push_back(config);
    command.insert(command.end(), overrides.begin(), overrides.end());
    return toy::run(command);
  }
  // Both refuse it so, and no run has begun.
  void refused(const Arguments& overrides, const std::string& says) const {
    const Ended check = run({"config", "check"}, overrides), train = run({"train"}, overrides);
    CHECK(check.code == 2);
    CHECK(train.code == 2);
    CHECK_MESSAGE(contains(check.out, says), "got: " << check.out << "\nwanted: " << says);
    CHECK_MESSAGE(contains(train.err, says), "got: " << train.err << "\nwanted: " << says);
    CHECK_FALSE(toy::fs::exists(dir / "logs"));
  }
};

void says(const std::string& text, const std::string& words) {
  CHECK_MESSAGE(contains(text, words), "got: " << text << "\nwanted: " << words);
}

}  // namespace

TEST_CASE("names of environments are looked up among the built-in ones and those of env, at their place") {
  const Toy toy;
  toy.refused({"data.train.env_name=exact_anser"},
              "error: data.train.env_name: unknown environment 'exact_anser', did you mean 'exact_answer'?; known: ");
  toy.refused({"++env.my_reward.command=[sh]", "data.default.env_name=my_rewrad"},
              "data.default.env_name: unknown environment 'my_rewrad', did you mean 'my_reward'?");
  toy.refused(
      {"++data.validation=[{dataset_name: puzzle, env_name: exact_answer}, {dataset_name: puzzle, env_name: mth}]"},
      "data.validation.1.env_name: unknown environment 'mth', did you mean 'math'?");
  toy.refused({"++env.mine.speed=1", "data.train.env_name=mine"}, "data.train.env_name: unknown environment 'mine'");
  toy.dir.write("child.yaml", "defaults: toy.yaml\ndata:\n  train:\n    env_name: exact_anwser\n");
  const Ended child = toy::run({"config", "check", (toy.dir / "child.yaml").string()});
  says(child.out, "child.yaml:4:5: error: data.train.env_name: unknown environment 'exact_anwser'");
}

TEST_CASE("a plugin that is not there is named, with where it was looked for") {
  const Toy toy;
  const auto missing = [&](const Arguments& overrides, const std::string& what) {
    toy.refused(overrides, what);
    toy.refused(overrides, "searched: ");
  };
  missing({"policy.backend=toy_backnd"},
          "error: policy.backend: backend plugin 'toy_backnd' not found. Did you mean 'toy_backend'?");
  missing({"policy.generation.backend=mine"}, "policy.generation.backend: generator plugin 'mine' not found.");
  missing({"++loss_fn.plugin=mine"}, "loss_fn.plugin: loss plugin 'mine' not found.");
  missing({"++env.r={plugin: no_such_plugin}", "data.train.env_name=r"},
          "env.r.plugin: environment plugin 'no_such_plugin' not found.");
}

TEST_CASE("arguments of environments in use are read") {
  const Toy toy;
  toy.refused({"++env.exact_answer.ignore_caes=true"},
              "error: env.exact_answer.ignore_caes: unknown key, did you mean 'ignore_case'?");
  toy.refused({"++env.r={type: regex}", "data.train.env_name=r"}, "error: env.r.type: unknown environment 'regex'");
  toy.refused({"++env.r={rewards: [{name: math, wieght: 2}]}", "data.train.env_name=r"},
              "error: env.r.rewards.0.wieght: unknown key, did you mean 'weight'?");
  toy.refused({"++env.r={command: [sh], plugin: countdown}", "data.train.env_name=r"},
              "error: env.r: has both command and plugin: keep one");
  toy.refused({"++env.r={command: [no-such-reward]}", "data.train.env_name=r"},
              "error: env.r.command: no program 'no-such-reward' on PATH");
  const auto valid = [&](const Arguments& overrides) {
    const Ended check = toy.run({"config", "check"}, overrides);
    CHECK_MESSAGE(check.code == 0, check.out);
  };
  valid({"++env.r={plugin: no_such_plugin}"});  // in nobody's use
  valid({"++env.format={regexp: 1}"});          // in nobody's use
  const std::string touched = (toy.dir / "touched").string();
  valid({"++env.r={command: [touch, " + touched + "]}", "data.train.env_name=r"});
  CHECK_FALSE(toy::fs::exists(touched));
}

TEST_CASE("the learning-rate schedule is made once before the workers are") {
  const Toy toy;
  toy.refused({"policy.scheduler={name: cosine}"}, "error: policy.scheduler.name: unknown scheduler 'cosine'");
  toy.refused({"policy.scheduler=[{name: LinearLR}, {name: LinerLR}, {milestones: [3]}]"},
              "error: policy.scheduler.1.name: unknown scheduler 'LinerLR', did you mean 'LinearLR'?");
  toy.refused({"policy.scheduler={name: LinearLR, kwargs: {start_fcator: 0.1}}"},
              "error: policy.scheduler.kwargs.start_fcator: unknown argument");
}

TEST_CASE("several nodes without a launcher are told; on GPUs they are refused") {
  const Toy toy;
  const Ended two = toy.run({"train"}, {"cluster.num_nodes=2", "grpo.max_num_steps=1"});
  CHECK_MESSAGE(two.code == 0, two.err);
  says(two.err,
       "notice: cluster.num_nodes: 2 nodes, and no launcher has started this process: all 2 ranks would run on "
       "this host; several hosts need srun, mpirun or torchrun (docs/launch.md)");
  const Ended gpus = toy.run({"train"}, {"cluster.num_nodes=2", "cluster.gpus_per_node=4", "cluster.device=cuda"});
  CHECK(gpus.code == 2);
  says(gpus.err,
       "error: cluster.num_nodes: 2 nodes, and no launcher has started this process: all 8 ranks would run on "
       "this host. Start it by srun, mpirun or torchrun, a process for each rank, as `srun -N 2 "
       "--ntasks-per-node 4 hexad train ...` (docs/launch.md)");
}

TEST_CASE("an override behind dashes is answered with the form that it has") {
  const Toy toy;
  const auto dashed = [&](const Arguments& overrides, const std::string& words) {
    const Ended run = toy.run({"train"}, overrides);
    CHECK(run.code == 2);
    says(run.err, words);
  };
  dashed({"--learning_rate=1e-3"}, "overrides have no dashes: key=value, here policy.optimizer.kwargs.lr=1e-3\n");
  dashed({"--grpo.seed=3"}, "overrides have no dashes: key=value, here grpo.seed=3\n");
  dashed({"--json", "--max_steps", "4"}, "overrides have no dashes: key=value, here grpo.max_num_steps=VALUE\n");
  dashed({"--init_kl_coef", "-0.1", "--lora_rank", "8", "--epsilon=0.2"},
         "overrides have no dashes: key=value, here loss_fn.reference_policy_kl_penalty=VALUE\n  OpenRLHF's lora_rank: "
         "low-rank adapters are not available; all weights are trained\n  overrides have no dashes: key=value, here "
         "loss_fn.ratio_clip_min=0.2\n");
  dashed({"--packing_samples=true", "--train.batch_size=8"},
         "here policy.sequence_packing.enabled=true\n  overrides have no dashes: key=value, here "
         "policy.train_global_batch_size=8 (samples of an optimizer step)\n");
  const Ended report = toy::run({"report", "x", "--seed=3"});
  CHECK_FALSE(contains(report.err, "overrides"));
}

TEST_CASE("config check refuses what the section plugins would have the run refuse, and a plugin that is no name") {
  const Toy toy;
  const auto refused = [&](const Arguments& overrides, const std::string& what, int code = 3) {
    const Ended check = toy.run({"config", "check"}, overrides), train = toy.run({"train"}, overrides);
    CHECK(check.code == code);
    CHECK(train.code == code);
    says(check.out, what);
    says(train.err, what);
  };
  toy.refused({"plugins.enabled=false"},
              "error: plugins.enabled: false, and no run does without plugins: leave it out");
  const std::string other = "sha256:" + std::string(64, 'a');
  refused({"++plugins.pin={ppo_clip_c: '" + other + "'}"},
          "libppo_clip_c.so: plugins.pin.ppo_clip_c is " + other + ", the plugin has sha256:");
  refused({"++plugins.pin={ppo_clip_c: '" + other + "'}"},
          "libtoy_backend.so: 'toy_backend' is not listed in plugins.pin, and nothing unlisted loads");
  toy.refused({"data.train.env_name=mine", "++env.mine={plugin: [math]}"},
              "env.mine.plugin: want the name of an environment plugin or a path, got [\"math\"]");
}

TEST_CASE("a checkpoint is no model directory, and says how to make one of it") {
  const Toy toy;
  REQUIRE(toy.run({"train"}, {}).code == 0);
  const std::string run = (toy.dir / "checkpoints").string(), step = run + "/step_6";
  toy.dir.write("checkpoints/step_6/policy/weights/config.json", "{}");
  toy.dir.write("checkpoints/step_4/policy/weights/config.json", "{}");
  for (const char* command : {"generate", "score"}) {
    Arguments arguments = {command, step, "--input", toy.dir.write("in.jsonl", "").string()};
    says(toy::run(arguments).err, "policy.model_name: " + step +
                                      " is a checkpoint of a run. Make a model directory of it: hexad convert " + step +
                                      " <directory>");
    arguments[1] = run;
    says(toy::run(arguments).err,
         run + " holds checkpoints of a run. Make a model directory of one: hexad convert " + step + " <directory>");
  }
  says(toy.run({"train"}, {"policy.model_name=" + step}).err, step + " is a checkpoint of a run");
  says(toy::run({"convert", run, (toy.dir / "out").string()}).err,
       run + ": holds checkpoints of a run: name one of them. The newest is " + step);
}

TEST_CASE("a model that is not there: a hub's name, or a path") {
  const Toy toy;
  const auto model = [&](const std::string& name) { return toy.run({"train"}, {"policy.model_name=" + name}).err; };
  says(model("meta-llama/Llama-9.9-1B"), "Fetch it: hf download meta-llama/Llama-9.9-1B\n");
  for (const std::string name : {"core/Qwen2.5-1.5B", "/nowhere/x", "../nowhere", "./owner/name", "a/b/c"}) {
    const std::string said = model(name);
    says(said, "policy.model_name: no such directory: '" + name + "'");
    CHECK_FALSE(contains(said, "hf download"));
  }
  toy.dir.write("models/qwen/config.json", "{}");
  const std::string models = (toy.dir / "models").string();
  says(model(models + "/qwne"), "no such directory: '" + models + "/qwne', did you mean '" + models + "/qwen'?");
}

TEST_CASE("a configuration that is not there is answered with the nearest file") {
  const Toy toy;
  const std::string near = (toy.dir / "tyo.yaml").string();
  says(toy::run({"train", near}).err, near + ": no such file, did you mean " + toy.config + "?");
  says(toy::run({"train", "/nowhere/nothere.yaml"}).err, "/nowhere/nothere.yaml: no such file\n");
}

TEST_CASE("config check looks for the model, its tokenizer and the data as a run does") {
  const Toy toy;
  const std::string nowhere = (toy.dir / "nowhere").string();
  toy.refused({"policy.model_name=" + nowhere}, "error: policy.model_name: no such directory: '" + nowhere + "'");
  toy.refused({"policy.model_name=nowhere"}, "error: policy.model_name: no such directory: 'nowhere'");
  toy.refused({"policy.model_name=" + toy.dir.path().string()},
              "error: policy.model_name: " + toy.dir.path().string() + " has no config.json. Wanted: ");
  toy.refused({"++policy.tokenizer.name=" + nowhere}, "policy.tokenizer.name: no directory '" + nowhere + "'");
  toy.refused({"++policy.tokenizer.chat_template=mine"}, "policy.tokenizer.chat_template: 'mine' is no template, and ");
  const auto told = [&](const Arguments& overrides, const std::string& words) {
    const Ended check = toy.run({"config", "check"}, overrides);
    CHECK_MESSAGE(check.code == 0, check.out);
    says(check.out, "notice: " + words);
    const Ended train = toy.run({"train"}, overrides), here = toy.run({"config", "check", "--here"}, overrides);
    CHECK(train.code == 2);
    CHECK(here.code == 2);
    says(train.err, "error: " + words);
    says(here.out, "error: " + words);
    CHECK_FALSE(toy::fs::exists(toy.dir / "logs"));
  };
  toy.refused({"++policy.tokenizer.name=" + toy.dir.write("broken/tokenizer.json", "{").parent_path().string()},
              "broken/tokenizer.json");
  // What may well be there where the run will be.
  const std::string bare = toy.dir.write("bare/config.json", R"({"model_type": "llama"})").parent_path().string();
  told({"policy.model_name=" + bare}, "policy.tokenizer: " + bare + "/tokenizer.json");
  told({"policy.model_name=meta-llama/Llama-9.9-1B"}, "policy.model_name: no such directory: ");
  const std::string data = "+data.train={dataset_name: ResponseDataset, env_name: exact_answer, data_path: ";
  told({"~data.train", data + "nope.jsonl}"}, "data.train: ./nope.jsonl: no such file or folder (data_path)");
  told({"~data.train", data + "owner/rows}"},
       "data.train: ./owner/rows: no such file or folder (data_path); the Hub's cache, ");
}

TEST_CASE("starts that are refused leave no folder, whatever part of the run refuses") {
  const Toy toy;
  const auto refused = [&](const Arguments& overrides, const std::string& words) {
    const Ended run = toy.run({"train"}, overrides);
    CHECK(run.code == 2);
    says(run.err, words);
    CHECK_FALSE(toy::fs::exists(toy.dir / "logs"));
    CHECK_FALSE(toy::fs::exists(toy.dir / "checkpoints"));
  };
  const std::string data = "+data.train={dataset_name: ResponseDataset, env_name: exact_answer, data_path: ",
                    rows = toy.dir.write("rows.jsonl", "{oops\n").string();
  refused({"~data.train", data + rows + "}"}, "rows.jsonl:1: ");
  refused({"data.train.size=4"}, "num_prompts_per_step");
  refused({"++env.r={command: [sh, -c, exit 1]}", "data.train.env_name=r"}, "has never answered");
  // Others of the same folder stay, and their numbers.
  REQUIRE(toy.run({"train"}, {"grpo.max_num_steps=1"}).code == 0);
  CHECK(toy.run({"train", "--fresh"}, {"~data.train", data + rows + "}"}).code == 2);
  CHECK(toy::fs::exists(toy.dir / "logs/exp_001/metrics.jsonl"));
  CHECK_FALSE(toy::fs::exists(toy.dir / "logs/exp_002"));
  CHECK(toy::fs::exists(toy.dir / "checkpoints/step_1/training_info.json"));
}
