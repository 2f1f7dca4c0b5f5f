// Asynchronous GRPO through the first-party plugins: equal to the synchronous run where it must be, learning where it may
// lag, and never stuck or short of a sample.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/run/run_steps.hpp"

using first_party::both;
using first_party::lines_of;
using first_party::source;
using first_party::steps_of;
using plugin_test::contains;
using toy::TempDir;

namespace {

using Json = nlohmann::json;
using Overrides = std::vector<std::string>;

// Responses of 48 tokens, one after another: generation takes longer than training.
const Overrides kSlow = {"policy.max_total_sequence_length=64",
                         "policy.generation.max_new_tokens=48",
                         "++policy.generation.ignore_eos=true",
                         "++policy.generation.stop_token_ids=[]",
                         "++policy.generation.native_cfg.max_num_seqs=1",
                         "grpo.num_prompts_per_step=8",
                         "policy.train_global_batch_size=128"};

// So many groups of so many samples a step.
Overrides small_steps(int groups, int samples = 4) {
  return {fmt::format("grpo.num_prompts_per_step={}", groups),
          fmt::format("grpo.num_generations_per_prompt={}", samples),
          fmt::format("policy.train_global_batch_size={}", samples * groups)};
}

// Four at a time that end at different places: updates meet some under way.
Overrides uneven(int groups, int samples) {
  std::vector<int> lengths;
  for (int i = 0; i < groups * samples; ++i) lengths.push_back(16 + i * 7 % 33);
  return both(both(kSlow, small_steps(groups, samples)),
              {"++policy.generation.native_cfg.max_num_seqs=4",
               fmt::format("++policy.generation.imposed_lengths=[{}]", fmt::join(lengths, ","))});
}

std::string age(int steps) { return fmt::format("grpo.async_grpo.max_trajectory_age_steps={}", steps); }
std::string steps(int count) { return fmt::format("grpo.max_num_steps={}", count); }

std::vector<std::string> arguments(const TempDir& dir, const Overrides& overrides) {
  return first_party::train(source() + "/configs/quickstart_async.yaml", dir,
                            both({"++cluster.device=cpu"}, overrides));
}
Overrides alone(const Overrides& overrides) { return both(first_party::training_alone(), overrides); }

// An environment of three turns that says "a" in between, and responses that end at any of five tokens.
struct Talk {
  double seconds = 0;  // how long it thinks about a response
  // Conditions on `step` and `group`, in Python. Where `held` holds, the first turn makes the file asked-STEP and waits for
  // the file go-STEP.
  std::string ends_at_once = "False", held = "False";
};

Overrides talking(const TempDir& dir, const Talk& talk = {}) {
  const auto program = dir.write("talk.py", R"PY(
import json, os, sys, time
seconds, ends_at_once, held = sys.argv[1:]
def hold(step):
    here = os.path.dirname(__file__)
    open("%s/asked-%d" % (here, step), "w").close()
    while not os.path.exists("%s/go-%d" % (here, step)): time.sleep(0.01)
for line in sys.stdin:
    r = json.loads(line)
    turns, step, group = r.get("state", 0), r["step"], r["group"]
    if turns != r["turn"]: sys.exit("state %s at turn %s" % (turns, r["turn"]))
    if turns == 0 and eval(held): hold(step)
    time.sleep(float(seconds))
    answer = {"id": r["id"], "reward": r["response"].count("a") + 0.125 * turns, "state": turns + 1}
    if turns < 2 and not eval(ends_at_once): answer["reply"] = "a"
    print(json.dumps(answer), flush=True)
)PY");
  const std::string env = fmt::format("{{command: [python3, {}, '{}', '{}', '{}'], num_workers: 1, timeout_s: {}}}",
                                      program.string(), talk.seconds, talk.ends_at_once, talk.held, toy::kPatienceS);
  return {"grpo.max_rollout_turns=3", "policy.max_total_sequence_length=32", "data.train.env_name=talk",
          "++policy.generation.stop_token_ids=[2,4,5,6,7]", "++env.talk=" + env};
}

std::vector<Json> train(const Overrides& overrides) {
  const TempDir dir;
  const toy::Ended run = toy::run(arguments(dir, overrides), "", 600);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  return steps_of(dir);
}

// The rank of a worker, as its log has it.
pid_t worker_of(pid_t controller, int rank) {
  const std::string log = fmt::format("worker-{}.log", rank);
  for (const pid_t pid : toy::workers_of(controller))
    if (toy::fs::read_symlink(fmt::format("/proc/{}/fd/1", pid)).filename() == log) return pid;
  return 0;
}

bool has_begun(const TempDir& dir) { return toy::fs::exists(dir / "logs/exp_001/train_data_step1.jsonl"); }

// A run that is held in its environment, and its ranks.
class HeldRun {
 public:
  explicit HeldRun(const Talk& talk, const Overrides& overrides)
      : program_(arguments(dir_, alone(both(talking(talk_, talk), overrides)))) {}

  // Until the environment holds back the first turn of the step.
  void wait_for_hold(int step) const {
    wait_for([&] { return is_held(step); });
  }
  // The same, with a rank that runs for a small part of the time until then, and stands still at the end.
  void wait_for_hold_slowed(int step, int rank) const {
    const pid_t slow = worker(rank);
    wait_for([&] {
      ::kill(slow, SIGCONT);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ::kill(slow, SIGSTOP);
      return is_held(step);
    });
  }
  void go_on(int step) const { talk_.write(fmt::format("go-{}", step), ""); }
  void wait_for_line(const std::string& text) const {
    wait_for([&] { return contains(program_.out() + program_.err(), text); });
  }
  void signal(int rank, int number) const { ::kill(worker(rank), number); }
  // The metrics of every step of a run that ends well.
  std::vector<Json> end() {
    const toy::Ended run = program_.wait();
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    return steps_of(dir_);
  }

 private:
  bool is_held(int step) const { return toy::fs::exists(talk_ / fmt::format("asked-{}", step)); }
  pid_t worker(int rank) const {
    const pid_t worker = worker_of(program_.pid(), rank);
    REQUIRE(worker > 0);
    return worker;
  }
  template <typename Done>
  void wait_for(const Done& done) const {
    toy::eventually([&] { return done() || !toy::alive(program_.pid()); });
    REQUIRE_MESSAGE(done(), program_.err());
  }
  TempDir dir_, talk_;
  toy::Program program_;
};

// Step 3 is being drawn, and what comes after it waits, when the generators stop; they go on once step 1 is trained. With
// and without a cache that is computed again.
void check_updates_in_flight(const Overrides& overrides) {
  const int validation = 0;
  for (const std::string recompute : {"false", "true"}) {
    CAPTURE(recompute);
    HeldRun run({.held = "step in (0, 3)"},
                both({"grpo.max_rollout_turns=1", "++grpo.val_at_start=true", "grpo.max_val_samples=4", steps(8),
                      age(7), "++grpo.async_grpo.recompute_kv_cache_after_weight_updates=" + recompute},
                     overrides));
    run.wait_for_hold(validation);
    run.signal(/*rank=*/1, SIGSTOP);
    run.go_on(validation);
    run.wait_for_hold_slowed(3, /*rank=*/1);
    run.go_on(3);
    run.wait_for_line("step 1/8");
    run.signal(1, SIGCONT);
    const std::vector<Json> got = run.end();
    REQUIRE(got.size() == 8);
    double crossing = 0;
    for (const Json& step : got) {
      crossing += step.at("train/updated_in_flight_rate").get<double>();
      CHECK(step.at("train/avg_trajectory_age").get<double>() <= 7);
      // Tokens drawn after an update are younger than the group that they belong to.
      CHECK(step.at("train/avg_token_age").get<double>() <= step.at("train/avg_trajectory_age").get<double>());
    }
    CHECK(crossing > 0);
    CHECK(got.back().at("train/groups_dropped") == 0);
  }
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("with samples of age 0 it is the synchronous run") {
  const std::vector<Json> want = train(alone({steps(4), "grpo.async_grpo.enabled=false"}));
  const std::vector<Json> got = train(alone({steps(4), age(0)}));
  REQUIRE(got.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(got[i].at("samples") == want[i].at("samples"));
    CHECK(got[i].at("train/loss") == want[i].at("train/loss"));
    CHECK(got[i].at("train/grad_norm") == want[i].at("train/grad_norm"));
    CHECK(got[i].at("train/avg_trajectory_age") == 0);
  }
}

TEST_CASE("samples of several turns: with age 0 the synchronous run too") {
  const TempDir dir;
  const Overrides run = both(talking(dir), {steps(3)});
  const std::vector<Json> want = train(alone(both(run, {"grpo.async_grpo.enabled=false"})));
  const std::vector<Json> got = train(alone(both(run, {age(0)})));
  REQUIRE(got.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(got[i].at("samples") == want[i].at("samples"));
    for (const char* metric : {"train/loss", "train/grad_norm", "train/reward", "train/total_turns",
                               "train/mean_env_tokens_per_sample", "train/token_mult_prob_error"})
      CHECK_MESSAGE(got[i].at(metric) == want[i].at(metric), metric);
    CHECK(got[i].at("train/max_turns_per_sample") == 3);
  }
}

TEST_CASE("samples of several turns may be old, change weights between turns, and are all accounted for") {
  const TempDir dir, logs;
  const Overrides few = both(small_steps(8), {steps(8), age(2)});
  const toy::Ended run = toy::run(arguments(logs, alone(both(talking(dir, {.seconds = 0.02}), few))), "", 600);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(contains(run.out + run.err, "groups: 64 started, 64 trained, 0 dropped"));
  const std::vector<Json> all = steps_of(logs);
  REQUIRE(all.size() == 8);
  double crossing = 0;
  for (const Json& step : all) {
    CHECK(step.at("samples").size() == 8 * 4);
    CHECK(step.at("train/avg_turns_per_sample").get<double>() > 1);
    CHECK(step.at("train/avg_token_age").get<double>() <= step.at("train/avg_trajectory_age").get<double>());
    crossing += step.at("train/updated_in_flight_rate").get<double>();
  }
  CHECK(all.back().at("train/avg_trajectory_age") == 2);
  CHECK(crossing > 0);
}

TEST_CASE("without updates in flight all turns of a sample are of one version") {
  const TempDir dir;
  const Overrides run = {steps(8), age(7), "grpo.async_grpo.in_flight_weight_updates=false"};
  for (const Json& step : train(alone(both(talking(dir), run)))) CHECK(step.at("train/updated_in_flight_rate") == 0);
}

// Rewards have deadlines of their own: the time of a group is that of its generation.
TEST_CASE("groups whose environment thinks are not given up") {
  HeldRun run({.held = "step == 1"}, both(small_steps(8), {steps(2), "++grpo.async_grpo.group_timeout_s=6"}));
  run.wait_for_hold(1);
  std::this_thread::sleep_for(std::chrono::seconds(7));
  run.go_on(1);
  const std::vector<Json> got = run.end();
  REQUIRE(got.size() == 2);
  CHECK(got.back().at("train/groups_dropped") == 0);
}

TEST_CASE("the quickstart learns from samples that are one and two steps old") {
  for (const int old : {1, 2}) {
    CAPTURE(old);
    const TempDir dir;
    const toy::Ended run = toy::run(arguments(dir, {age(old)}), "", 600);
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    CHECK(contains(run.out + run.err, "groups: 2560 started, 2560 trained, 0 dropped"));
    std::vector<double> accuracy;
    for (const Json& line : lines_of(dir / "logs/exp_001/metrics.jsonl"))
      if (line.contains("validation/accuracy")) accuracy.push_back(line.at("validation/accuracy"));
    REQUIRE(accuracy.size() >= 2);
    CHECK(accuracy.front() < 0.2);
    CHECK(accuracy.back() >= 0.9);
    const std::vector<Json> all = steps_of(dir);
    CHECK(all.front().at("train/avg_trajectory_age") == 0);
    CHECK(all.back().at("train/avg_trajectory_age") == old);
    CHECK(all.back().contains("timing/train/exposed_generation"));
    CHECK(all.back().contains("train/buffer_size"));
  }
}

TEST_CASE("an update in flight keeps what was drawn, and says which weights drew each token") {
  check_updates_in_flight(uneven(8, 16));
}

TEST_CASE("without updates in flight every sample is of one version") {
  const Overrides run = {steps(8), age(7), "grpo.async_grpo.in_flight_weight_updates=false"};
  for (const Overrides& validation : {Overrides{}, Overrides{"++grpo.val_period=1"}})
    for (const Json& step : train(both(alone(both(uneven(8, 16), run)), validation)))
      CHECK(step.at("train/updated_in_flight_rate") == 0);
}

TEST_CASE("two generating replicas share the groups") {
  const std::vector<Json> got = train(alone(
      both(kSlow, {steps(4), "cluster.gpus_per_node=3", "policy.generation.colocated.resources.gpus_per_node=2"})));
  REQUIRE(got.size() == 4);
  CHECK(got.back().at("train/groups_dropped") == 0);
}

// Of a replica's ranks one may be inside a pass while the other has read its next command.
TEST_CASE("a replica of two ranks takes weights and requests while it draws") {
  const Overrides by_two = {"cluster.gpus_per_node=3", "policy.generation.colocated.resources.gpus_per_node=2",
                            "++policy.generation.native_cfg.tensor_parallel_size=2"};
  const std::vector<Json> want = train(alone({steps(3), "grpo.async_grpo.enabled=false"}));
  const std::vector<Json> same = train(alone(both(by_two, {steps(3), age(0)})));
  REQUIRE(same.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(same[i].at("samples") == want[i].at("samples"));
  check_updates_in_flight(both(both(uneven(2, 4), by_two), {"++grpo.val_period=3"}));
}

TEST_CASE("a run that is interrupted says what became of every group") {
  const TempDir dir;
  toy::Program program(arguments(dir, alone({age(2)})));
  REQUIRE_MESSAGE(toy::eventually([&] { return has_begun(dir); }), program.err());
  ::kill(program.pid(), SIGINT);
  const toy::Ended run = program.wait();
  const std::string text = run.out + run.err;
  INFO(text);
  const size_t at = text.find("groups: ");
  REQUIRE(at != std::string::npos);
  int started = 0, trained = 0, dropped = 0;
  REQUIRE(std::sscanf(text.c_str() + at, "groups: %d started, %d trained, %d dropped", &started, &trained, &dropped) ==
          3);
  CHECK(trained < started);
  CHECK(started == trained + dropped);
}

TEST_CASE("a resumed run trains on every prompt that the uninterrupted one does") {
  const TempDir whole, parts;
  const Overrides run = {"++grpo.val_at_start=false", "++grpo.val_at_end=false", "++grpo.val_period=0", age(2),
                         "checkpointing.save_period=3"};
  REQUIRE(toy::run(arguments(whole, both(run, {steps(6)})), "", 600).code == 0);
  REQUIRE(toy::run(arguments(parts, both(run, {steps(3)})), "", 600).code == 0);
  const toy::Ended resumed = toy::run(arguments(parts, both(run, {steps(6)})), "", 600);
  INFO(resumed.out << resumed.err);
  REQUIRE(resumed.code == 0);
  CHECK(contains(resumed.out + resumed.err, "what was being drawn when step 3 was saved is drawn again"));
  const std::vector<Json> want = steps_of(whole), got = steps_of(parts, "exp_002");
  REQUIRE(want.size() == 6);
  REQUIRE(got.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(got[i].at("prompts") == want[3 + i].at("prompts"));
}

TEST_CASE(
    "a generator that stands still for a while: its groups are drawn again from their first turn, and none is "
    "missing") {
  HeldRun run({.held = "step == 2"}, both(small_steps(2), {steps(3), age(0), "++grpo.async_grpo.group_timeout_s=6"}));
  run.wait_for_hold(2);
  run.signal(/*rank=*/1, SIGSTOP);
  run.go_on(2);  // to the second turn
  run.wait_for_line("(grpo.async_grpo.group_timeout_s 6): given up, and drawn again");
  run.signal(1, SIGCONT);
  const std::vector<Json> all = run.end();
  REQUIRE(all.size() == 3);
  CHECK(all.back().at("train/groups_dropped").get<double>() >= 2);
  for (const Json& step : all) CHECK(step.at("samples").size() == 2 * 4);
}

// Training takes longer than the timeout: of the groups that ran meanwhile two have ended, and two stand still.
TEST_CASE("what ended while others trained is not given up with what did not") {
  HeldRun run({.ends_at_once = "step == 1 or group < 2", .held = "step < 3"},
              both(small_steps(4), {steps(4), "grpo.async_grpo.in_flight_weight_updates=false",
                                    "++policy.generation.native_cfg.max_num_seqs=1",  // in order of their steps
                                    "++grpo.async_grpo.group_timeout_s=6"}));
  run.wait_for_hold(1);
  run.signal(/*rank=*/0, SIGSTOP);
  run.go_on(1);
  run.wait_for_hold(2);
  run.signal(1, SIGSTOP);
  run.go_on(2);
  std::this_thread::sleep_for(std::chrono::seconds(7));
  run.signal(0, SIGCONT);
  run.wait_for_line("given up, and drawn again");
  run.signal(1, SIGCONT);
  const std::vector<Json> all = run.end();
  REQUIRE(all.size() == 4);
  CHECK(all.back().at("train/groups_dropped") == 2);
  for (const Json& step : all) CHECK(step.at("samples").size() == 4 * 4);
}

TEST_CASE("groups that are too slow again and again end the run, which says what to raise") {
  const TempDir dir;
  const toy::Ended run =
      toy::run(arguments(dir, alone(both(kSlow, {steps(3), age(0), "++grpo.async_grpo.group_timeout_s=0.01"}))));
  INFO(run.err);
  CHECK(run.code == 4);
  CHECK(contains(run.err, "was given up 4 times (overdue)"));
  CHECK(contains(run.err, "Raise grpo.async_grpo.group_timeout_s"));
}

TEST_CASE("failures of generation that are tolerated, and caches that are computed again, by how a run ends") {
  const auto ended = [](const std::string& fault, const std::string& key) {
    const TempDir dir;
    const Overrides toys = {fmt::format("++plugins.paths=[{}]", toy::plugins().string()),
                            "policy.backend=toy_backend",
                            "policy.generation.backend=toy_generator",
                            "policy.optimizer={name: torch.optim.SGD, kwargs: {lr: 40.0}}",
                            fmt::format("++policy.generation.plugin_config={{fault: '{}'}}", fault),
                            "++grpo.async_grpo." + key};
    return toy::run(arguments(dir, alone(both(both(small_steps(2), {steps(3)}), toys))));
  };
  const auto check_error = [](const toy::Ended& run, const std::string& text) {
    CHECK(run.code != 0);
    CHECK_MESSAGE(contains(run.err, text), run.err);
  };
  check_error(ended("complete@0:error", "max_generation_failures=0"), "generation failed 1 time in a row");
  check_error(ended("complete@0:error", "max_generation_failures=2"), "generation failed 3 times in a row");

  // It sleeps and wakes, which throws away what a generator holds of the requests that run.
  const std::string sleeps = "sleep@0:error", recompute = "recompute_kv_cache_after_weight_updates=";
  const toy::Ended kept = ended(sleeps, recompute + "false");
  CHECK_MESSAGE(kept.code == 0, kept.err);
  check_error(ended(sleeps, recompute + "true"), "the toy was told to fail");
}

TEST_CASE("a generator that is killed ends the run in time and by name") {
  const TempDir dir;
  toy::Program program(arguments(dir, alone(both(kSlow, {steps(200)}))));
  REQUIRE_MESSAGE(toy::eventually([&] { return has_begun(dir); }), program.err());
  const pid_t generator = worker_of(program.pid(), 1);
  REQUIRE(generator > 0);
  const auto began = std::chrono::steady_clock::now();
  ::kill(generator, SIGKILL);
  const toy::Ended run = program.wait();
  INFO(run.err);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(45));  // well before its silence counts
  CHECK(run.code == 4);
  CHECK(contains(run.err, "rank 1 on "));
  CHECK(contains(run.err, fmt::format("(pid {}) ended: killed by signal 9", generator)));
}

TEST_SUITE_END();
