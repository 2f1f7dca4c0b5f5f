// `hexad train` from the outside: a whole run on three plugins of another folder, its ends, and what it leaves.
#include <doctest/doctest.h>

#include "tests/support/report.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a run on three foreign plugins learns, and leaves its log, report and checkpoints") {
  const TempDir dir;
  const Ended run = toy::run(train(
      dir, {"grpo.max_num_steps=60", "checkpointing.save_period=30", "grpo.val_period=30", "grpo.val_at_start=true"}));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(run.out == fmt::format("done after step 60: {}/logs/exp_001/report.html\n", dir.path().string()));
  CHECK(run.err.starts_with("device    cpu (1 rank)\nmodel     "));
  CHECK(contains(run.err, "\ndata      puzzle: 64 prompts, 16 to validate on\nbackend   toy_backend 1.2.0 ("));
  CHECK(contains(run.err, "loss      ppo_clip_c 1.0.0 ("));
  CHECK(contains(run.err, "generator toy_generator 1.2.0 ("));
  CHECK(contains(run.err, "\nstep 60/60  reward "));
  CHECK_FALSE(contains(run.err, "\r"));  // no bar in a pipe
  const auto steps = lines(dir / "logs/exp_001/metrics.jsonl");
  REQUIRE(steps.size() == 61);
  CHECK(steps[0].at("step") == 0);
  CHECK(steps[0].at("validation/accuracy") < 0.4);
  CHECK(steps[60].at("validation/accuracy") > 0.8);
  CHECK(steps[60].at("train/reward") > 0.7);
  CHECK(steps[1].at("train/clip_frac") == 0);
  CHECK(steps[1].at("train/toy_requests") == 64);
  for (const char* file : {"config.yaml", "report.html", "train_data_step60.jsonl", "worker-0.log"}) {
    CHECK_MESSAGE(toy::fs::exists(dir / "logs/exp_001" / file), file);
  }
  CHECK(weights(dir, 60).size() == 2 * 12 * 12 * sizeof(float));
  size_t with_texts = 0;
  for (const Json& sample : lines(dir / "logs/exp_001/train_data_step60.jsonl")) {
    if (!sample.contains("tokens")) continue;
    ++with_texts;
    std::string text;
    for (const std::string token : sample.at("tokens")) text += token;
    CHECK(sample.at("tokens").size() == sample.at("token_ids").size());
    const std::string content = sample.at("content"), response = sample.at("response");
    CHECK(
        text.starts_with(content.substr(0, content.size() - response.size())));  // of the response, special tokens too
    CHECK(text.size() >= content.size());
  }
  CHECK(with_texts == 16);
}

TEST_CASE("the first line of a run says what it runs on, before notices and also where nobody chose it") {
  const TempDir dir;
  const Ended run = toy::run(train(dir, {"cluster.device=auto", "grpo.max_num_steps=1", "++cluster.segment_size=1"}));
  INFO(run.err);
  CHECK(run.code == 0);
  if (run.err.starts_with("device    cuda")) return test_report::skipped("this machine has GPUs");
  CHECK(run.err.starts_with("device    cpu (1 rank; cluster.device auto has found no GPU that this build can use)\n"));
  CHECK(contains(run.err, "notice: cluster.segment_size: the launcher places nodes"));
}

TEST_CASE("without libzmq a run ends with a line that says so, and commands that start no ranks work") {
  const TempDir dir;
  dir.write("libzmq.so.5", "no library");
  const auto without = [&](const Arguments& arguments) {
    return Program({"env", "LD_LIBRARY_PATH=" + dir.path().string(), toy::hexad().string()}, arguments, "").wait();
  };
  CHECK(without({"plugin", "list"}).code == 0);
  const Ended run = without(train(dir));
  CHECK(run.code != 0);
  CHECK_MESSAGE(contains(run.err, "of libzmq.so.5 cannot be used"), run.err);
  CHECK_MESSAGE(contains(run.err, "Ranks talk through libzmq: install it (Debian: libzmq5)"), run.err);
}

TEST_CASE(
    "a recorded step is replayed into a loss: the same one gives the same bits, a changed one says how far it is") {
  const TempDir dir;
  REQUIRE(toy::run(train(dir, {"grpo.max_num_steps=2", "++plugins.record_dir=" + (dir / "calls").string()})).code == 0);
  std::vector<std::string> files;
  for (const auto& entry : toy::fs::directory_iterator(dir / "calls/rank_0")) files.push_back(entry.path().string());
  CHECK(files.size() == 4);  // 64 samples in micro-batches of 16, of the first step alone
  const auto replay = [&](Arguments more) {
    Arguments arguments = {"plugin", "replay", "ppo_clip_c"};
    arguments.insert(arguments.end(), files.begin(), files.end());
    arguments.insert(arguments.end(), {"--path", toy::plugins().string(), "--json"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended run = toy::run(arguments);
    INFO(run.err);
    REQUIRE(run.code == 0);
    std::istringstream out(run.out);
    std::vector<Json> results;
    for (std::string line; std::getline(out, line);) results.push_back(Json::parse(line));
    return results;
  };
  for (const Json& result : replay({})) {
    CHECK(result.at("step") == 1);
    CHECK(result.at("sequences") == 16);
    CHECK(result.at("loss") == result.at("recorded_loss"));
    CHECK(result.at("largest_gradient_difference") == 0);
    CHECK(result.at("metrics").contains("clip_frac"));
  }
  double worst = 0;
  for (const Json& result : replay({"--set", "clip_eps=-0.5"}))
    worst = std::max(worst, result.at("largest_gradient_difference").get<double>());
  CHECK(worst > 0);
  const Ended text = toy::run({"plugin", "replay", "ppo_clip_c", files[0], "--path", toy::plugins().string()});
  CHECK(contains(text.out, "largest difference of a gradient 0; clip_frac "));
  const Ended none =
      toy::run({"plugin", "replay", "ppo_clip_c", (dir / "toy.yaml").string(), "--path", toy::plugins().string()});
  CHECK(none.code == 2);
  CHECK(contains(none.err, "toy.yaml: not a safetensors file"));
}

TEST_CASE("a loss is told whether its micro-batch ran padded or packed") {
  std::string source = toy::read_text(toy::source_dir() / "sdk/examples/loss_c/ppo_clip_c.c");
  const std::string end = "  return HEXAD_OK;\n}\n\nstatic const hexad_loss_vtable";
  source.replace(source.find(end), 0, "  clip_frac[0] = batch->padded_length, clip_frac[1] = 1;\n");
  source.replace(source.find("ppo_clip_c\", "), 10, "shape_seen");
  const plugin_test::PluginFolder folder;
  folder.write_manifest(folder.compile("shape_seen", "-Wl,--no-as-needed -lm", source), "shape_seen",
                        {{"version", "1.0.0"}});
  const auto seen = [&](const char* packing) {
    const TempDir dir;
    const Ended run = toy::run(
        train(dir, {fmt::format("plugins.paths=[{}, {}]", toy::plugins().string(), folder.path().string()),
                    "loss_fn.plugin=shape_seen", "grpo.max_num_steps=1",
                    fmt::format("++policy.sequence_packing={{enabled: {}, train_mb_tokens: 64, logprob_mb_tokens: 64}}",
                                packing)}));
    INFO(run.err);
    REQUIRE(run.code == 0);
    return lines(dir / "logs/exp_001/metrics.jsonl").at(0).at("train/clip_frac").get<double>();
  };
  CHECK(seen("false") >= 1);
  CHECK(seen("true") == 0);
}

TEST_CASE("rewards that teach nothing are told of after a few steps, with a sample, its answer and its verdict") {
  const TempDir dir;
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {"env={exact_answer: {rewards: [{name: exact_answer, weight: 0}]}}",
                                          "checkpointing.enabled=false"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return toy::run(toy::train(dir, overrides));
  };
  const Ended flat = run({"grpo.max_num_steps=5"});
  CHECK(flat.code == 0);
  const std::string said = "steps 1 to 3: the rewards of each prompt's samples are all equal";
  CHECK_MESSAGE(contains(flat.err, said), flat.err);
  CHECK(flat.err.find(said) == flat.err.rfind("the rewards of each prompt's samples") - 14);  // once
  for (const char* part :
       {"For example: prompt \"", "response \"", "expected answer \"", "reward 0.", "env.exact_answer"})
    CHECK_MESSAGE(contains(flat.err, part), flat.err);
  const Ended none = run({"grpo.use_dynamic_sampling=true", "grpo.dynamic_sampling_max_gen_batches=2"});
  CHECK(none.code != 0);
  CHECK_MESSAGE(contains(none.err, "step 1: no group varies. For example: prompt \""), none.err);
  CHECK_MESSAGE(contains(none.err, "grpo.dynamic_sampling_max_gen_batches is 2"), none.err);
}

TEST_CASE("a run that is complete already says so") {
  const TempDir dir;
  CHECK(toy::run(train(dir)).code == 0);
  const Ended again = toy::run(train(dir));
  INFO(again.err);
  CHECK(again.code == 0);
  CHECK(contains(again.err, "nothing was trained: the run had already reached step 6. Raise grpo.max_num_steps"));
  CHECK(contains(again.out, "done after step 6: "));
  CHECK_FALSE(toy::fs::exists(dir / "logs/exp_002/report.html"));
}

TEST_CASE("the checkpoint of another model is refused, and stays as it was") {
  const TempDir dir;
  CHECK(toy::run(train(dir)).code == 0);
  const std::string before = weights(dir, 6);
  toy::fs::copy(toy::source_dir() / "configs/quickstart_model", dir / "other", toy::fs::copy_options::recursive);
  Json config = Json::parse(toy::read_text(dir / "other/config.json"));
  config["hidden_size"] = 128;
  dir.write("other/config.json", config.dump());
  const Ended run = toy::run(train(dir, {"policy.model_name=" + (dir / "other").string(), "grpo.max_num_steps=8"}));
  INFO(run.err);
  CHECK(run.code == 2);
  CHECK(contains(run.err, "holds the checkpoint of another run"));
  CHECK(contains(run.err, "model.hidden_size: saved 64, now 128"));
  CHECK(contains(run.err, "Give this run a checkpoint_dir of its own"));
  CHECK(weights(dir, 6) == before);
}

TEST_CASE("one worker on a thread of the program gives the same run") {
  const TempDir process, thread;
  CHECK(toy::run(train(process)).code == 0);
  const Ended run = toy::run(train(thread, {"--in-process", "--json"}));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(Json::parse(run.out) ==
        Json{{"run_dir", (thread / "logs/exp_001").string()}, {"steps", 6}, {"interrupted", false}});
  CHECK(weights(thread, 6) == weights(process, 6));
}

TEST_CASE("what is wrong before the first step is said with the right exit code") {
  const TempDir dir;
  const auto ends = [&](int code, const Arguments& overrides, const std::string& says) {
    const Ended run = toy::run(train(dir, overrides));
    CHECK(run.code == code);
    CHECK_MESSAGE(contains(run.err, says), "got: " << run.err << "\nwanted: " << says);
    CHECK_FALSE(contains(run.err, "internal"));
  };
  ends(2, {"policy.model_name=/nowhere"}, "policy.model_name: no such directory: '/nowhere'");
  ends(2, {"policy.tokenizer.name=/nowhere"}, "policy.tokenizer.name: no directory '/nowhere'");
  ends(2, {"grpo.num_prompts_per_stp=4"},
       "there is no key grpo.num_prompts_per_stp; did you mean grpo.num_prompts_per_step?");
  ends(2, {"data.train.kind=sucessor"}, "successor");
  ends(2, {"data.train.env_name=exact_anser"}, "did you mean 'exact_answer'?");
  ends(2, {"policy.backend=toy_bakend"}, "toy_backend");
  ends(2, {"loss_fn.plugin=toy_backend"}, "toy_backend");
  ends(2, {"+policy.plugin_config.fualt=1"},
       "policy.plugin_config.fualt is not used by 'toy_backend'. Did you mean fault?");
  ends(3, {"+policy.plugin_config.fault=nonsense"}, "fault: wanted WHERE@STEP:HOW");
  ends(3, {"+policy.plugin_config.fault=create@0:error"}, "backend 'toy_backend' 1.2.0");
  dir.write("bad.jsonl", "{\"input\": \"abcd\", \"output\": \"e\"}\n{\"input\": \"abcd\"\n");
  const std::string bad = (dir / "bad.jsonl").string();
  ends(2,
       {"~data.train.kind", "~data.train.size", "~data.train.validation_size",
        "data.train.dataset_name=ResponseDataset", "+data.train.data_path=" + bad},
       "bad.jsonl:2: malformed JSON");
}

TEST_CASE("a run says at its start which file it reads, and by which columns") {
  const TempDir dir;
  dir.write("rows.jsonl", R"({"question": "abcd", "solution": "e"})"
                          "\n");
  const std::string rows = (dir / "rows.jsonl").string();
  const Ended run =
      toy::run(train(dir, {"~data.train",
                           "+data.train={dataset_name: ResponseDataset, env_name: exact_answer, data_path: " + rows +
                               ", input_key: question, output_key: solution}",
                           "grpo.max_num_steps=1", "grpo.num_prompts_per_step=1", "policy.train_global_batch_size=8",
                           "policy.train_micro_batch_size=8"}));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(contains(run.err,
                 "\ndata      " + rows + " (ResponseDataset, input_key: question, output_key: solution): 1 prompt\n"));
}

TEST_CASE("a run that asks for a GPU where there is none says so in one line and ends with 2") {
  const TempDir dir;
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);  // none, on any machine
  for (const char* ranks : {"1", "2"}) {
    const Ended run = toy::run(train(dir, {"++cluster.device=cuda", fmt::format("++cluster.gpus_per_node={}", ranks)}));
    INFO(run.err);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    // Before it stands, where there are several ranks, that the toy's manifest has no facts.
    CHECK(std::ranges::count(run.err.substr(run.err.rfind("hexad: ")), '\n') == 1);
    CHECK(contains(run.err, "cluster.device is 'cuda', but this "));  // build has no CUDA, or machine has no GPU
    CHECK(contains(run.err, "cluster.device=cpu"));
  }
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_SUITE_END();
