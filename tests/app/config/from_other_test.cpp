// `hexad config from-trl` and `from-verl`: streams, files, exit codes.
#include <doctest/doctest.h>

#include "tests/support/toy/program.hpp"

using plugin_test::contains;
using toy::Ended;
using toy::TempDir;

namespace {

const std::string kArguments = R"({"num_generations": 8, "use_peft": true, "zork": "x", "dataset_name": "d"})";

}  // namespace

TEST_CASE("from-trl writes to standard output, and names what is left out on standard error") {
  const TempDir dir;
  const std::string file = dir.write("args.json", kArguments).string();
  const Ended run = toy::run({"config", "from-trl", file, "model_name_or_path=my/model", "--processes", "2"});
  CHECK_MESSAGE(run.code == 0, run.err);
  CHECK(contains(run.out, "# Written by `hexad config from-trl` of "));
  CHECK(contains(run.out, "# - use_peft: low-rank adapters are not available; all weights are trained\n"));
  CHECK(contains(run.out, "  model_name: my/model\n"));
  CHECK(contains(run.out,
                 "  num_prompts_per_step: 2  # per_device_train_batch_size 8 x 2 processes x "
                 "steps_per_generation 1; / num_generations 8\n"));
  CHECK(
      contains(run.err, "not carried over: use_peft: low-rank adapters are not available; all weights are trained\n"));
  CHECK(contains(run.err, "not carried over: zork: no such setting is known of that system"));

  const std::string out = (dir / "run.yaml").string();
  const Ended written = toy::run({"config", "from-trl", file, "model_name_or_path=m", "--out", out});
  CHECK(written.code == 0);
  CHECK(written.out.empty());
  CHECK(contains(toy::read_text(out), "grpo:\n  num_prompts_per_step: 1 "));
}

TEST_CASE("a setting of another system ends no comment and begins no key") {
  const TempDir dir;
  const std::string file =
      dir.write("args.json", R"({"num_generations": 8, "model_name_or_path": "m\npolicy: {}", "dataset_name": "d: {",)"
                             R"( "a\nplugins: {paths: [\"/tmp\"]}": 1})")
          .string();
  const Ended run = toy::run({"config", "from-trl", file});
  CHECK_MESSAGE(run.code == 0, run.err);
  CHECK_FALSE(contains(run.out, "\nplugins"));
  CHECK(contains(run.out, "  model_name: \"m\\npolicy: {}\"\n"));
  CHECK_FALSE(contains(run.err, "\nplugins"));
}

TEST_CASE("wrong use of from-trl and from-verl") {
  const TempDir dir;
  const std::string file = dir.write("args.json", kArguments).string();
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& words, int code = 2) {
    std::vector<std::string> all = {"config"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ended run = toy::run(all);
    CHECK(run.code == code);
    CHECK(run.out.empty());
    CHECK_MESSAGE(contains(run.err, words), run.err);
  };
  refused({"from-trl"}, "FILE is required");
  refused({"from-trl", file}, "model_name_or_path: is missing, for to_dict() does not hold the model");
  refused({"from-trl", file, "--trainer", "ppo"}, "--trainer: got 'ppo', wanted grpo, sft, dpo or reward");
  refused({"from-trl", file, "--processes", "0"}, "--processes: got 0, wanted a number from 1 to 1000000");
  refused({"from-trl", file, "no_equals"}, "no_equals");
  refused({"from-trl", (dir / "nowhere.json").string()}, "nowhere.json");
  refused({"from-trl", dir.write("list.json", "[1]").string()}, "list.json");
  refused({"from-verl", dir.write("bad.yaml", "data: {train_batch_size: -1}\n").string()},
          "bad.yaml:1:8: data.train_batch_size: got -1, wanted at least 1");
}
