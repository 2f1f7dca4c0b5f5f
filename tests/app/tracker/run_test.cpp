// Runs of the toy that are told to trackers: what these get, how they may fail, and that the run does not mind.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/support/toy/train.hpp"

using namespace toy::names;

namespace {

// A tracker that keeps what it is sent in a file.
std::string keeps(const std::string& file) {
  return fmt::format("++logger.trackers={{name: mine, command: 'cat > {}'}}", file);
}

std::vector<Json> events(const std::vector<Json>& lines, const std::string& kind) {
  std::vector<Json> found;
  for (const Json& line : lines)
    if (line.at("event") == kind) found.push_back(line);
  return found;
}

std::string text_of(const std::vector<Json>& lines) {
  std::string text;
  for (const Json& line : lines) text += line.dump() + "\n";
  return text;
}

// A variable of the environment, while it lives.
struct Variable {
  Variable(const char* name, const char* value) : name(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name); }
  const char* name;
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a tracker gets the run's configuration, each step's metrics, samples, the report and the end") {
  const TempDir dir;
  const std::string file = (dir / "told").string();
  const Ended run = toy::run(train(dir, {keeps(file), "grpo.max_num_steps=4", "grpo.val_at_start=true",
                                         "grpo.val_period=2", "checkpointing.enabled=false"}));
  INFO(run.err);
  REQUIRE(run.code == 0);
  const std::vector<Json> told = lines(file), steps = events(told, "step"),
                          logged = lines(dir / "logs/exp_001/metrics.jsonl");
  REQUIRE(logged.size() == 5);
  REQUIRE(steps.size() == logged.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    Json wanted = logged[i];
    CHECK(steps[i].at("step") == wanted.at("step"));
    CHECK(steps[i].at("time") == wanted.at("time"));
    wanted.erase("step"), wanted.erase("time");
    CHECK(steps[i].at("metrics") == wanted);
  }

  const Json& start = told.front();
  CHECK(start.at("event") == "start");
  const std::string id = start.at("id"), name = start.at("name");
  CHECK(id.size() == 21);
  CHECK(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos);
  CHECK(name == "grpo-" + id.substr(0, 8));
  CHECK(start.at("project") == "hexad");
  CHECK(start.at("resumed_at") == 0);
  CHECK(start.at("settings") == Json::object());
  CHECK(start.at("log_dir") == (dir / "logs/exp_001").string());
  CHECK(start.at("config").at("grpo").at("max_num_steps") == 4);
  CHECK(contains(run.err, fmt::format("\ntracker   mine (run {})\n", id)));

  const std::vector<Json> tables = events(told, "samples");
  REQUIRE(tables.size() == 7);  // of four steps and three validations
  CHECK(tables[0].at("name") == "val_data");
  CHECK(tables[1].at("name") == "train_data");
  CHECK(tables[1].at("step") == 1);
  const std::vector<std::string> columns = {"content",   "response",      "expected_answer", "rewards",
                                            "truncated", "input_lengths", "sample_loss_mask"};
  CHECK(tables[1].at("columns") == Json(columns));
  CHECK(tables[1].at("rows").size() == 16);
  const Json sample = lines(dir / "logs/exp_001/train_data_step1.jsonl")[3];
  Json row = Json::array();
  for (const std::string& column : columns) row.push_back(sample.at(column));
  CHECK(tables[1].at("rows")[3] == row);

  REQUIRE(told.size() == 15);
  CHECK(told[13] ==
        Json{{"event", "artifact"}, {"name", "report"}, {"path", (dir / "logs/exp_001/report.html").string()}});
  CHECK(told[14] == Json{{"event", "end"}, {"status", "finished"}});
  CHECK_FALSE(contains(run.err, "have not reached"));
}

TEST_CASE("a resumed run is the same to its trackers, one that starts afresh another") {
  const TempDir dir;
  const auto start_of = [&](const std::string& file, Arguments more) {
    more.insert(more.begin(), {keeps((dir / file).string()), "checkpointing.save_period=2"});
    const Ended run = toy::run(train(dir, more));
    REQUIRE_MESSAGE(run.code == 0, run.err);
    const std::vector<Json> told = lines(dir / file);
    REQUIRE_MESSAGE(told.size() > 2, text_of(told));
    CHECK(events(told, "step").front().at("step") == told.front().at("resumed_at").get<int>() + 1);
    return told.front();
  };
  const Json first = start_of("first", {"grpo.max_num_steps=2"}), second = start_of("second", {"grpo.max_num_steps=4"}),
             fresh = start_of("fresh", {"grpo.max_num_steps=2", "--fresh"});
  CHECK(first.at("resumed_at") == 0);
  CHECK(second.at("resumed_at") == 2);
  CHECK(second.at("id") == first.at("id"));
  CHECK(second.at("name") == first.at("name"));
  CHECK(second.at("log_dir") == (dir / "logs/exp_002").string());
  CHECK(fresh.at("resumed_at") == 0);
  CHECK(fresh.at("id") != first.at("id"));
}

TEST_CASE("kill -9 of a tracker in the middle of a run ends the tracker alone") {
  const TempDir dir;
  const auto script = dir.write("dies.py",
                                "import json, os, sys\n"
                                "out = open(sys.argv[1], 'w')\n"
                                "for line in sys.stdin:\n"
                                "    out.write(line), out.flush()\n"
                                "    if json.loads(line).get('step') == 2:\n"
                                "        print('the last words', file=sys.stderr, flush=True)\n"
                                "        os.kill(os.getpid(), 9)\n");
  const Ended run = toy::run(train(
      dir, {fmt::format(
                "++logger.trackers=[{{name: mine, command: [python3, {}, {}]}},{{name: other, command: 'cat > {}'}}]",
                script.string(), (dir / "told").string(), (dir / "other").string()),
            "grpo.max_num_steps=400", "checkpointing.enabled=false"}));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(lines(dir / "logs/exp_001/metrics.jsonl").size() == 400);
  CHECK(contains(run.err, "tracker mine: the last words\n"));
  CHECK(contains(run.err,
                 fmt::format("tracker mine: `python3 {} {}` was killed by signal 9 (Killed), and the run goes on "
                             "without it. The last line that it wrote: the last words\n",
                             script.string(), (dir / "told").string())));
  CHECK(contains(run.err, " lines have not reached `python3 "));
  CHECK(events(lines(dir / "other"), "step").size() == 400);
}

TEST_CASE("a run does not wait for a tracker that never reads, nor for one that is not there") {
  const TempDir dir;
  const Ended run = toy::run(train(dir, {"++logger.trackers=[{name: sleeps, command: [sleep, '1000']},"
                                         "{name: missing, command: [hexad-no-such-tracker]}]",
                                         "checkpointing.enabled=false"}));
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(lines(dir / "logs/exp_001/metrics.jsonl").size() == 6);
  CHECK(contains(run.err, "tracker sleeps: `sleep 1000` has not ended 30 s after its last line and is killed\n"));
  CHECK(contains(run.err, "tracker missing: `hexad-no-such-tracker` ended with exit status 127"));
  CHECK(contains(run.err, ": hexad-no-such-tracker: not found\n"));
}

TEST_CASE("a run that fails tells its trackers so, and so does one that is interrupted") {
  const TempDir dir;
  const std::string file = (dir / "told").string();
  const Ended failed =
      toy::run(train(dir, {keeps(file), "++grpo.stop_at_validation_metric=acc", "++grpo.stop_at_validation_threshold=0",
                           "grpo.val_at_start=true", "grpo.val_period=1"}));
  CHECK(failed.code != 0);
  REQUIRE_MESSAGE(toy::fs::exists(file), failed.err);
  CHECK(lines(file).back() == Json{{"event", "end"}, {"status", "failed"}});

  Program interrupted(train(dir, {keeps(file), "grpo.max_num_steps=100000", "checkpointing.enabled=false"}));
  REQUIRE(toy::eventually([&] { return contains(interrupted.err(), "\nstep 3/"); }));
  ::kill(interrupted.pid(), SIGINT);
  CHECK(interrupted.wait().code == 130);
  CHECK(lines(file).back() == Json{{"event", "end"}, {"status", "interrupted"}});
}

TEST_CASE("a tracker is given its settings, no secrets of the configuration, and of the environment those named") {
  const TempDir dir;
  const std::string file = (dir / "told").string(), env = (dir / "env").string();
  const Variable api("HEXAD_TEST_API_KEY", "key-of-the-test"), token("HEXAD_TEST_TOKEN", "token-of-the-test"),
      plain("HEXAD_TEST_PLAIN", "plain");
  const Ended run = toy::run(
      train(dir, {fmt::format("++logger.trackers=[{{name: mine, command: 'env > {}; cat > {}', settings: {{project: p, "
                              "run_name: n, more: [1, 2]}}}}]",
                              env, file),
                  "++logger.tracker_pass_env=[HEXAD_TEST_TOKEN]", "grpo.max_num_steps=1", "checkpointing.enabled=false",
                  "++env.unused={command: [cat], api_key: secret-of-the-file}"}));
  INFO(run.err);
  REQUIRE(run.code == 0);
  const std::string given = toy::read_text(env);
  CHECK(contains(given, "HEXAD_TEST_PLAIN=plain\n"));
  CHECK(contains(given, "HEXAD_TEST_TOKEN=token-of-the-test\n"));
  CHECK_FALSE(contains(given, "HEXAD_TEST_API_KEY"));
  const Json start = lines(file).front();
  CHECK(start.at("project") == "p");
  CHECK(start.at("name") == "n");
  CHECK(start.at("settings").at("more") == Json({1, 2}));
  CHECK(start.at("config").at("env").at("unused").at("api_key") == "***");
}

TEST_CASE("a service without its library is told of with Python's own words") {
  const TempDir dir;
  const auto python = dir.write("python", "#!/bin/sh\nexec python3 -S -s -E \"$@\"\n");  // without installed packages
  ::chmod(python.c_str(), 0700);
  for (const std::string service : {"wandb", "mlflow", "swanlab", "trackio"}) {
    const Ended run = toy::run(
        train(dir, {fmt::format("++logger.{}_enabled=true", service), "++logger.tracker_python=" + python.string(),
                    "grpo.max_num_steps=1", "checkpointing.enabled=false"}));
    INFO(run.err);
    CHECK(run.code == 0);
    CHECK(contains(run.err, fmt::format("tracker {0}: `{1} {2}/share/hexad/tracker/to_{0}.py` ended with exit status 1",
                                        service, python.string(), toy::hexad().parent_path().parent_path().string())));
    CHECK(contains(run.err,
                   fmt::format("The last line that it wrote: ModuleNotFoundError: No module named '{}'\n", service)));
  }
}

TEST_CASE("each service has its switch and is handed its section") {
  const TempDir dir;
  const auto python = dir.write("python", "#!/bin/sh\nexec cat > \"$HEXAD_TEST_TOLD.$(basename \"$1\")\"\n");
  ::chmod(python.c_str(), 0700);
  const Variable told("HEXAD_TEST_TOLD", (dir / "told").c_str());
  const Ended run = toy::run(
      train(dir, {"++logger.tracker_python=" + python.string(), "grpo.max_num_steps=1", "checkpointing.enabled=false",
                  "++logger.wandb_enabled=true", "++logger.wandb={project: a, name: b, entity: c}",
                  "++logger.mlflow_enabled=true", "++logger.mlflow={experiment_name: d, run_name: e, tracking_uri: f}",
                  "++logger.swanlab_enabled=true", "++logger.swanlab={project: g, name: h}",
                  "++logger.trackio_enabled=true", "++logger.trackio={project: i, space_id: j}"}));
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto start = [&](const std::string& service) { return lines(dir / ("told.to_" + service + ".py")).front(); };
  CHECK(start("wandb").at("settings") == Json{{"project", "a"}, {"name", "b"}, {"entity", "c"}});
  CHECK(start("wandb").at("project") == "a");
  CHECK(start("wandb").at("name") == "b");
  CHECK(start("mlflow").at("settings") == Json{{"experiment_name", "d"}, {"run_name", "e"}, {"tracking_uri", "f"}});
  CHECK(start("mlflow").at("project") == "d");
  CHECK(start("mlflow").at("name") == "e");
  CHECK(start("swanlab").at("settings") == Json{{"project", "g"}, {"name", "h"}});
  CHECK(start("trackio").at("settings") == Json{{"project", "i"}, {"space_id", "j"}});
  for (const char* service : {"wandb", "mlflow", "swanlab", "trackio"})
    CHECK(contains(run.err, fmt::format("tracker   {} (run ", service)));
}
