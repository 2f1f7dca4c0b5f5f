// `hexad train` from the outside: a whole run on three plugins of another folder, its ends, and what it leaves.
#include <doctest/doctest.h>

#include "tests/support/report.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/program.hpp"

using plugin_test::contains;
using plugin_test::Json;
using toy::Ended;
using toy::Program;
using toy::TempDir;

namespace {

using Arguments = std::vector<std::string>;

// `hexad train` of the toy's config in `dir` with overrides.
Arguments train(const TempDir& dir, Arguments overrides = {}) {
  const auto config = dir.write("toy.yaml", toy::config_text(dir.path()));
  overrides.insert(overrides.begin(), {"train", config.string()});
  return overrides;
}

std::vector<Json> lines(const toy::fs::path& path) {
  std::vector<Json> found;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) found.push_back(Json::parse(line));
  return found;
}

std::string weights(const TempDir& dir, int step) {
  return toy::read_text(dir / fmt::format("checkpoints/step_{}/policy/weights/toy.bin", step));
}

bool all_gone(const std::vector<pid_t>& pids) {
  return std::ranges::none_of(pids, [](pid_t pid) { return toy::alive(pid); });
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a run on three foreign plugins learns, and leaves its log, report and checkpoints") {
  const TempDir dir;
  const Ended run = toy::run(train(
      dir, {"grpo.max_num_steps=60", "checkpointing.save_period=30", "grpo.val_period=30", "grpo.val_at_start=true"}));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(run.out == fmt::format("done after step 60: {}/logs/exp_001/report.html\n", dir.path().string()));
  CHECK(contains(run.err, "backend   toy_backend 1.2.0 ("));
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

TEST_CASE("Ctrl-C finishes the step and saves; the resumed run equals the undisturbed one bit for bit") {
  const TempDir undisturbed, interrupted;
  CHECK(toy::run(train(undisturbed)).code == 0);
  {
    Program program(train(interrupted, {"+policy.plugin_config.fault=train@0:slow", "checkpointing.save_period=100"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
    const auto workers = toy::workers_of(program.pid());
    CHECK(workers.size() == 1);
    ::kill(program.pid(), SIGINT);
    const Ended ended = program.wait();
    INFO(ended.err);
    CHECK(ended.code == 130);
    CHECK(contains(ended.err, "interrupted: finishing this step and saving; press again to stop at once"));
    CHECK(contains(ended.out, "interrupted and saved after step "));
    CHECK(all_gone(workers));
  }
  const Ended resumed = toy::run(train(interrupted));
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(contains(resumed.err, fmt::format("resumed from {}/checkpoints/step_", interrupted.path().string())));
  CHECK(toy::fs::exists(interrupted / "logs/exp_002/report.html"));
  CHECK(weights(interrupted, 6) == weights(undisturbed, 6));
  CHECK(weights(interrupted, 6) != "");
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

TEST_CASE("an interrupted run without checkpoints does not claim to be saved") {
  const TempDir dir;
  Program program(train(dir, {"checkpointing.enabled=false", "+policy.plugin_config.fault=train@0:slow"}));
  REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
  ::kill(program.pid(), SIGINT);
  const Ended ended = program.wait();
  CHECK(ended.code == 130);
  CHECK_MESSAGE(contains(ended.out, "interrupted, not saved (checkpointing.enabled is false) after step "), ended.out);
}

TEST_CASE("a second Ctrl-C stops at once and leaves no process") {
  const TempDir dir;
  Program program(train(dir, {"+policy.plugin_config.fault=train@2:hang"}));
  REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
  const auto workers = toy::workers_of(program.pid());
  ::kill(program.pid(), SIGINT);
  REQUIRE(toy::eventually([&] { return contains(program.err(), "interrupted: finishing"); }));
  ::kill(program.pid(), SIGINT);
  CHECK(program.wait().code == 130);
  CHECK(workers.size() == 1);
  CHECK(toy::eventually([&] { return all_gone(workers); }));
}

TEST_CASE(
    "SIGINT and SIGTERM at once, as from a terminal and a launcher, save and stop; a second later they end at once") {
  SUBCASE("at once") {
    const TempDir dir;
    Program program(train(dir, {"+policy.plugin_config.fault=train@0:slow", "checkpointing.save_period=100"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
    for (const int signal : {SIGINT, SIGTERM, SIGTERM}) ::kill(program.pid(), signal);
    const Ended ended = program.wait();
    INFO(ended.err);
    CHECK(ended.code == 130);
    CHECK(contains(ended.out, "interrupted and saved after step "));
  }
  SUBCASE("a second later") {
    const TempDir dir;
    Program program(train(dir, {"+policy.plugin_config.fault=train@2:hang"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
    ::kill(program.pid(), SIGTERM);
    REQUIRE(toy::eventually([&] { return contains(program.err(), "interrupted: finishing"); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    ::kill(program.pid(), SIGINT);
    const Ended ended = program.wait();
    CHECK(ended.code == 130);
    CHECK(ended.out.empty());
  }
}

TEST_CASE("kill -9 of the controller in the middle of a save loses only the steps since the last one") {
  const TempDir undisturbed, killed;
  CHECK(toy::run(train(undisturbed)).code == 0);
  {
    Program program(train(killed, {"+policy.plugin_config.fault=save@4:hang"}));
    REQUIRE(toy::eventually([&] { return toy::fs::exists(killed / "checkpoints/tmp_step_4/policy/weights/toy.bin"); }));
    const auto workers = toy::workers_of(program.pid());
    ::kill(program.pid(), SIGKILL);
    CHECK(program.wait().code == -SIGKILL);
    CHECK(workers.size() == 1);
    CHECK(toy::eventually([&] { return all_gone(workers); }));
  }
  CHECK(toy::fs::exists(killed / "checkpoints/tmp_step_4"));
  const Ended resumed = toy::run(train(killed));
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(contains(resumed.err, "checkpoints/step_2 (step 2)"));
  CHECK_FALSE(toy::fs::exists(killed / "checkpoints/tmp_step_4"));
  CHECK(weights(killed, 6) == weights(undisturbed, 6));
}

TEST_CASE("a worker that is lost ends the run with 4; max_restarts goes on from the newest checkpoint") {
  SUBCASE("it dies in a call") {
    const TempDir dir;
    const Ended run = toy::run(train(dir, {"+policy.plugin_config.fault=train@3:kill"}));
    CHECK(run.code == 4);
    CHECK_MESSAGE(contains(run.err, "hexad: rank 0 on "), run.err);
    CHECK(contains(run.err, "ended: killed by signal 9 (Killed); last call 'train', "));
    CHECK(contains(run.err, "logs/exp_001/worker-0.log"));
  }
  SUBCASE("it crashes while it generates") {
    const TempDir dir;
    const Ended run = toy::run(train(dir, {"+policy.generation.plugin_config.fault=generate@2:segv"}));
    CHECK(run.code == 4);
    CHECK_MESSAGE(contains(run.err, "ended: killed by signal 11 (Segmentation fault); last call 'generate', "),
                  run.err);
    CHECK(contains(run.err, "hexad: crashed in generator 'toy_generator' 1.2.0 (/"));
    CHECK(contains(run.err, "libtoy_generator.so, sha256 "));
    CHECK(contains(run.err, "): submit at step 2"));
  }
  SUBCASE("it hangs") {
    const TempDir dir;
    const Ended run =
        toy::run(train(dir, {"+policy.plugin_config.fault=forward@2:hang", "cluster.worker_timeout_s=2"}));
    CHECK(run.code == 4);
    CHECK(run.seconds < 60);
    CHECK_MESSAGE(contains(run.err, "did not answer within 2 s"), run.err);
    CHECK(contains(run.err, "last call 'forward'"));
  }
  SUBCASE("and every restart ends the same way") {
    const TempDir dir;
    const Ended run = toy::run(train(dir, {"+policy.plugin_config.fault=train@3:kill", "cluster.max_restarts=1"}));
    CHECK(run.code == 4);
    CHECK(contains(run.err, "restarting from the newest checkpoint (1 of at most 1)"));
    CHECK(contains(run.err, "(step 2)"));
  }
  SUBCASE("from the beginning where nothing was saved") {
    const TempDir dir;
    const Ended run = toy::run(train(dir, {"+policy.plugin_config.fault=train@1:kill", "cluster.max_restarts=1"}));
    CHECK(run.code == 4);
    SAYS(run.err, "\nrestarting from the beginning (1 of at most 1)\n");
  }
  SUBCASE("but not after Ctrl-C") {
    const TempDir dir;
    Program program(train(dir, {"+policy.plugin_config.fault=train@1:hang", "cluster.max_restarts=2"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "\ngenerator "); }));
    ::kill(program.pid(), SIGINT);
    REQUIRE(toy::eventually([&] { return contains(program.err(), "interrupted: finishing"); }));
    for (const pid_t worker : toy::workers_of(program.pid())) ::kill(worker, SIGKILL);
    const Ended run = program.wait();
    CHECK(run.code == 4);
    SAYS(run.err, "interrupted: not restarting\nhexad: rank 0 on ");
    CHECK_FALSE(contains(run.err, "restarting from"));
    CHECK_FALSE(toy::fs::exists(dir / "logs/exp_002"));
  }
  SUBCASE("and the restart succeeds") {
    const TempDir undisturbed, dir;
    CHECK(toy::run(train(undisturbed)).code == 0);
    Program program(train(dir, {"+policy.plugin_config.fault=train@0:slow", "cluster.max_restarts=1"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 3/6"); }));
    for (const pid_t worker : toy::workers_of(program.pid())) ::kill(worker, SIGKILL);
    const Ended run = program.wait();
    INFO(run.err);
    CHECK(run.code == 0);
    CHECK(contains(run.err, "restarting from the newest checkpoint (1 of at most 1)"));
    CHECK(weights(dir, 6) == weights(undisturbed, 6));
  }
}

TEST_CASE("a log disk that fills up ends no run: what was trained is saved, and the log is whole when there is room") {
  std::string mount;
  for (const char* tried : {"-m", "-rm"})
    if (mount.empty() &&
        std::system(fmt::format("unshare {} mount -t tmpfs none /mnt 2> /dev/null", tried).c_str()) == 0)
      mount = tried;
  if (mount.empty()) {
    test_report::skipped("a mount of its own is not allowed");
    return;
  }
  const TempDir dir;
  toy::fs::create_directories(dir / "logs");
  toy::fs::create_directories(dir / "kept");
  const auto on_full_disk = [&](const std::string& meanwhile, Arguments more) {
    const std::string script =
        "cd " + dir.path().string() +
        "; mount -t tmpfs -o size=4m none logs || exit 125; \"$@\" & run=$!; soon() { until [ $1 $2 ]; do sleep 0.05; "
        "done; }; soon -s logs/exp_001/metrics.jsonl; dd if=/dev/zero of=logs/filling bs=4k 2> /dev/null; " +
        meanwhile + "; wait $run; code=$?; cp logs/exp_001/* kept; exit $code";
    more.insert(more.end(), {"+policy.plugin_config.fault=train@0:slow", "grpo.max_num_steps=12"});
    return Program({"unshare", mount, "sh", "-c", script, "sh", toy::hexad().string()}, train(dir, more), "").wait();
  };
  SUBCASE("there is room again") {
    const Ended run = on_full_disk("soon -e checkpoints/step_6; rm logs/filling", {});
    INFO(run.err);
    CHECK(run.code == 0);
    SAYS(run.err, "cannot write ");
    SAYS(run.err, "No space left on device. The run goes on and every step tries again");
    SAYS(run.err, "there is room again in ");
    const auto steps = lines(dir / "kept/metrics.jsonl");
    REQUIRE(steps.size() == 12);
    for (size_t i = 0; i < 12; ++i) CHECK(steps[i].at("step") == i + 1);
    for (int step = 1; step <= 12; ++step)
      CHECK(lines(dir / fmt::format("kept/train_data_step{}.jsonl", step)).size() == 64);
  }
  SUBCASE("there is none") {
    const Ended run = on_full_disk("true", {"checkpointing.save_period=1000"});
    INFO(run.err);
    CHECK(weights(dir, 12) != "");
    SAYS(run.err, "step 12/12  reward ");
    SAYS(run.err, " lacks the metrics of steps ");
    CHECK(run.code == 0);
  }
}

TEST_CASE("a step whose gradient is not finite is skipped and counted; a series of them ends the run") {
  const TempDir dir;
  const Ended one = toy::run(train(dir, {"+policy.plugin_config.fault=train@3:nan"}));
  INFO(one.err);
  CHECK(one.code == 0);
  CHECK(contains(one.err,
                 "step 3: loss or gradient was not finite (grad_norm nan); the update was skipped (1 of at most "));
  const auto steps = lines(dir / "logs/exp_001/metrics.jsonl");
  REQUIRE(steps.size() == 6);
  CHECK(steps[1].at("train/skipped_steps") == 0);
  CHECK(steps[2].at("train/skipped_steps") == 1);
  CHECK(steps[2].at("train/grad_norm").is_null());
  CHECK(steps[3].at("train/skipped_steps") == 0);

  const TempDir always;
  const Ended run = toy::run(train(always, {"+policy.plugin_config.fault=train@0:nan", "grpo.max_nonfinite_steps=3"}));
  INFO(run.err);
  CHECK(run.code == 2);
  CHECK(contains(run.err, "hexad: 3 steps in a row had a loss or gradient that was not finite; stopping"));
  CHECK(lines(always / "logs/exp_001/metrics.jsonl").size() == 3);
  CHECK(toy::fs::exists(always / "logs/exp_001/report.html"));
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
  ends(3, {"policy.backend=toy_bakend"}, "toy_backend");
  ends(3, {"loss_fn.plugin=toy_backend"}, "toy_backend");
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
