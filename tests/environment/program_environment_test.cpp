// Rewards by a program: what it is asked, and what becomes of each way in which it can fail.
#include "core/environment/program/environment.hpp"

#include <algorithm>
#include <functional>
#include <thread>

#include "core/environment/program/exchange.hpp"
#include "lib/base/json.hpp"
#include "lib/base/utf8.hpp"
#include "tests/environment/scripted_program.hpp"
#include "tests/support/toy/program.hpp"

using namespace scripted;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

using Floats = std::vector<float>;
using Flags = std::vector<uint8_t>;

// Why the one bad sample between good ones is invalid; the others have their rewards.
std::string why(const std::string& bad, Json section = Json::object()) {
  Script script;
  if (!section.contains("retries")) section["retries"] = 0;
  const auto environment = script.make(section);
  const Scores scores = score(*environment, {"good", "half", bad, "good", "bad"});
  CAPTURE(bad);
  CHECK(scores.rewards == Floats{1, 0.5f, 0, 1, 0});
  CHECK(scores.invalid == Flags{0, 0, 1, 0, 0});
  CHECK(score(*environment, {"good"}).rewards == Floats{1});  // it is well again
  return scores.why_invalid;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a program sees the whole sample, whatever its bytes, and its answer comes back") {
  Script script;
  const auto environment = script.make();
  const Json record = {{"tests", {1, 2}}};
  Sample sample;
  sample.prompt = "a \"prompt\"\n";
  sample.response = "echo:\xff\xc3\xa9";
  sample.ground_truth = "42";
  sample.prompt_tokens = 7;
  sample.response_tokens = 9;
  sample.truncated = true;
  sample.metadata = &record;
  sample.group = 5;
  CHECK(json_text(request_of(sample, 3, 8)) ==
        R"({"id":3,"prompt":"a \"prompt\"\n","response":"echo:)"
        "\xef\xbf\xbd\xc3\xa9"
        R"(","ground_truth":"42","metadata":{"tests":[1,2]},"prompt_tokens":7,"response_tokens":9,"truncated":true,)"
        R"("group":5,"step":8,"turn":0})");
  CHECK(environment->score(std::span(&sample, 1), 8).rewards == Floats{1});
  const Json written = parse_data(R"({"x": 1.10, "id": 123456789012345678901})", "d");
  sample.metadata = &written;
  SAYS(data_text(request_of(sample, 3, 8)), R"("metadata":{"x":1.10,"id":123456789012345678901})");
  CHECK(score(*environment, {"good", "true", "half", "bad"}).rewards == Floats{1, 1, 0.5f, 0});
  CHECK(environment->score({}, 1).rewards.empty());
}

TEST_CASE("a program may reply, and gets its state back at the sample's next turn") {
  Script script;
  const auto environment = script.make({{"batch_size", 2}});
  Responses responses({R"(say:{"reply": "go on", "state": {"at": [1]}})", "good",
                       R"(say:{"reply": {"content": "!", "role": "tool"}, "state": null})", R"(say:{"reply": null})"});
  const Scores scores = environment->score(responses.samples, 1);
  CHECK(scores.rewards == Floats{1, 1, 1, 1});
  REQUIRE(scores.replies.size() == 4);
  CHECK(scores.replies[0]->content == "go on");
  CHECK(scores.replies[0]->role == "user");
  CHECK_FALSE(scores.replies[1]);
  CHECK(scores.replies[2]->role == "tool");
  CHECK_FALSE(scores.replies[3]);
  CHECK(scores.states[0] == Json{{"at", {1}}});
  CHECK(scores.states[1].is_null());
  Sample next = responses.samples[1];
  next.turn = 1;
  next.state = &scores.states[0];
  CHECK(contains(json_text(request_of(next, 0, 1)), R"("turn":1,"state":{"at":[1]}})"));
  CHECK(environment->score(std::span(&next, 1), 1).rewards == Floats{1});
  SAYS(why(R"(say:{"reply": 3})"), "want a text or {\"content\": \"...\", \"role\": \"user\"} as \"reply\", got 3");
  SAYS(why(R"(say:{"reply": {"role": "tool"}})"), "as \"reply\", got {\"role\":\"tool\"}");
}

TEST_CASE("a sample that a program cannot score is invalid, and the others are scored") {
  SAYS(why("hang", {{"timeout_s", 5}}), "did not answer within ");
  SAYS(why("die"), "ended with exit status 3. Its standard error ends: cannot go on");
  SAYS(why("killed"), "was killed by signal 11 (Segmentation fault)");
  SAYS(why("eof"), "closed its standard output");
  SAYS(why("garbage"), "gave no answer: want a line of JSON (what is for a person goes to standard error; NaN");
  SAYS(why("garbage"), "got \"I think it is good\"");
  SAYS(why("two"), "answered more than one line: '{");
  SAYS(why("nan"), "want a line of JSON");
  SAYS(why("large"), "want a finite number as \"reward\", got 1e+300");
  SAYS(why("text"), "want a finite number as \"reward\", got \"1\"");
  SAYS(why("huge"), "answered more than 4 MiB");
  SAYS(why("endless"), "answered more than 4 MiB");
  SAYS(why("deep"), "gave no answer: want JSON of at most 64 levels, got more");
  SAYS(why("wide"), "gave no answer: want objects of at most 1000 members, got more");
  SAYS(why("bytes"), "want a line of JSON");
  SAYS(why("invalid:no tests"), "the program says that it cannot score it: no tests");
  SAYS(why("null"), "the program says that it cannot score it: it gave no reason");
  SAYS(why("other"), "want the \"id\" of the request, 2, got ");
  SAYS(why("number"), "want an object as {\"id\": 2, \"reward\": 1.0}, got 1");
  SAYS(why("nothing"), "want a \"reward\", got {\"id\":2}");
}

TEST_CASE("what is shown of an answer is cut between characters") {
  for (size_t before = 0; before < 3; ++before) {
    std::string text(before, 'a');
    for (int i = 0; i < 100; ++i) text += "\xE2\x82\xAC";
    std::string reason;
    try {
      answer_of({{"id", 2}, {"reward", text}}, 2, {});
    } catch (const BadAnswer& bad) {
      reason = bad.what();
    }
    SAYS(reason, "want a finite number as \"reward\", got \"");
    SAYS(reason, "\xE2\x82\xAC...");
    CHECK(utf8_prefix(reason) == reason.size());
  }
}

TEST_CASE("a line that nobody asked for is noticed before the next request") {
  Script script;
  const auto environment = script.make({{"num_workers", 1}, {"retries", 0}});
  const auto late = script.dir / "late";
  CHECK(score(*environment, {"late:" + late.string()}).rewards == Floats{1});
  REQUIRE(toy::eventually([&] { return toy::fs::exists(late); }));
  const Scores scores = score(*environment, {"good", "good"});
  CHECK(scores.invalid == Flags{1, 0});
  SAYS(scores.why_invalid, "wrote without being asked: 'done '");
}

TEST_CASE("a sample is tried again by a program that was started anew") {
  Script script;
  const Log log;
  const auto environment = script.make({{"retries", 1}});
  const Scores scores = score(*environment, {"once:" + (script.dir / "flag").string(), "die", "good"});
  CHECK(scores.rewards == Floats{1, 0, 1});
  CHECK(scores.invalid == Flags{0, 1, 0});
  CHECK(scores.metrics.at("num_reward_failures") == 3);
  SAYS(log.text(),
       "env.mine: `python3 " + script.file.string() + "` ended with exit status 5 (step 3, attempt 1 of 2)");
  SAYS(log.text(), "(step 3, attempt 2 of 2)");
}

TEST_CASE("a hanging program is killed with its children") {
  Script script;
  const auto environment = script.make({{"retries", 0}, {"timeout_s", 5}, {"startup_timeout_s", 5}});
  const std::string file = (script.dir / "pids").string();
  CHECK(score(*environment, {"good", "child:" + file}).invalid == Flags{0, 1});
  pid_t program = 0, child = 0;
  std::ifstream(file) >> program >> child;
  REQUIRE(child > 1);
  CHECK(toy::eventually([&] { return !toy::alive(program) && !toy::alive(child); }));
}

TEST_CASE("a program whose child keeps its pipes open is seen to end long before its deadline") {
  const auto began = std::chrono::steady_clock::now();
  SAYS(why("orphan", {{"timeout_s", 300}}), "was killed by signal 9 (Killed)");
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(150));
}

TEST_CASE("programs that are killed while nobody asks them are started again, and no sample loses an attempt") {
  Script script;
  const Log log;
  const auto environment = script.make({{"retries", 0}});
  using Which = std::function<bool(const std::string& command)>;
  // Returns when they are gone: a process that is still ending has no command, and its pipes are open.
  const auto kill_all = [&](const Which& which) {
    std::vector<pid_t> killed;
    for (const pid_t pid : toy::processes_with(script.file.string())) {
      if (which(toy::process(pid).command)) ::kill(pid, SIGKILL), killed.push_back(pid);
    }
    CHECK(toy::eventually([&] { return std::ranges::none_of(killed, toy::alive); }));
    return killed.size();
  };
  const Which any = [](const std::string&) { return true; };
  const Which python = [](const std::string& command) { return !command.starts_with("/bin/sh"); };
  const Which leader = [](const std::string& command) { return command.starts_with("/bin/sh"); };
  CHECK(toy::eventually([&] { return kill_all(any) == 0; }));  // before the first request
  const std::vector<std::string> texts = {"good", "half", "good", "half"};
  for (const Which& which : {any, python, leader}) {
    CHECK(score(*environment, texts).invalid == Flags(4, 0));
    CHECK(toy::eventually([&] { return kill_all(which) > 0; }));
    CHECK(toy::eventually([&] { return kill_all(which) == 0; }));
    const Scores scores = score(*environment, texts);
    CHECK(scores.rewards == Floats{1, 0.5f, 1, 0.5f});
    CHECK(scores.invalid == Flags(4, 0));
  }
  SAYS(log.text(), "was killed by signal 9 (Killed) (step 3, before it was asked, and is started again)");
}

TEST_CASE("a program that ends is gone with everything, and the environment leaves nothing") {
  const auto group_members = [] {
    size_t count = 0;
    for (const auto& entry : toy::fs::directory_iterator("/proc/self/task"))
      count += std::count(std::istreambuf_iterator<char>(std::ifstream(entry.path() / "children").rdbuf()), {}, ' ');
    return count;
  };
  const auto descriptors = [] {
    return std::distance(toy::fs::directory_iterator("/proc/self/fd"), toy::fs::directory_iterator());
  };
  const auto count = group_members();
  const auto open = descriptors();
  {
    Script script;
    const auto environment = script.make({{"retries", 0}, {"num_workers", 3}});
    score(*environment, {"good", "die", "garbage", "good"});
    CHECK(group_members() > count);
  }
  CHECK(group_members() == count);
  CHECK(descriptors() == open);
}

TEST_CASE("what a program writes on its standard error goes to the log, and not without bound") {
  Script script;
  const Log log;
  const auto environment = script.make({{"num_workers", 1}});
  CHECK(score(*environment, {"chatty", "good"}).invalid == Flags{0, 0});
  const std::string text = log.text();
  SAYS(text, "env.mine [0]: line 0 of a long story");
  SAYS(text, "env.mine [0]: the next lines are left out");
  CHECK_FALSE(contains(text, "line 100 of"));
  CHECK(text.size() < 20000);
  score(*environment, {"chatty"});
  CHECK(log.text().size() > text.size() + 2000);  // a step later there is room again
}

TEST_CASE("requests of several samples: a bad one is found by trying one by one") {
  Script script;
  const auto environment = script.make({{"batch_size", 4}, {"num_workers", 1}});
  CHECK(score(*environment, {"good", "half", "bad", "good", "half"}).rewards == Floats{1, 0.5f, 0, 1, 0.5f});
  const Scores scores = score(*environment, {"good", "die", "bad", "half"});
  CHECK(scores.rewards == Floats{1, 0, 0, 0.5f});
  CHECK(scores.invalid == Flags{0, 1, 0, 0});
  const Scores wrong_count = score(*environment, {"good", "short"});
  CHECK(wrong_count.invalid == Flags{0, 1});
  SAYS(wrong_count.why_invalid, "gave no answer: want a list of 1 answers, got 0 answers");
}

TEST_CASE("components are those that the configuration names, in every answer") {
  Script script;
  const auto environment = script.make({{"components", {"style", "tests"}}, {"retries", 0}});
  const Scores scores =
      score(*environment, {R"(parts:{"style": 0.5, "tests": true})", "invalid:x", R"(parts:{"tests": 0, "style": 2})"});
  CHECK(scores.components.at("style") == Floats{0.5f, 0, 2});
  CHECK(scores.components.at("tests") == Floats{1, 0, 0});
  CHECK(scores.invalid == Flags{0, 1, 0});
  const auto refused = [&](const std::string& parts) { return score(*environment, {"parts:" + parts}).why_invalid; };
  SAYS(refused(R"({"style": 1})"), "component 'tests' is missing in ");
  SAYS(refused(R"({"style": 1, "tests": 1, "speed": 1})"), "component 'speed' is not in the list `components`");
  SAYS(refused(R"({"style": 1, "tests": "yes"})"), "want a finite number as component 'tests', got \"yes\"");
  SAYS(refused("[]"), "want an object as \"components\", got []");
}

TEST_CASE("a program that has never answered ends the run; one that fails for long is not asked on and on") {
  Script script;
  const std::vector<std::string> many(40, "die");
  const auto broken = script.make({{"command", {"python3", "-c", "import no_such_module"}}});
  const Log log;
  const std::string error = error_of([&] { score(*broken, many); });
  const size_t more = log.text().find(" more failures in step 3");  // of 8 samples twice and what ran beside them
  REQUIRE(more != std::string::npos);
  CHECK(std::stoi(log.text().substr(log.text().rfind(' ', more - 1))) < 20);
  SAYS(error, "env.mine: the program `python3 -c import no_such_module` has never answered: ended with exit status 1");
  SAYS(error, "No module named 'no_such_module'. Try it by hand");
  SAYS(error_of([&] {
         score(*script.make({{"command", "exec nonsense-program"}}), {"good"});
       }),
       "has never answered: ended with exit status 127");

  const auto environment = script.make({{"retries", 0}});
  CHECK(score(*environment, {"good"}).invalid == Flags{0});
  const Scores scores = score(*environment, many);
  CHECK(std::count(scores.invalid.begin(), scores.invalid.end(), 1) == 40);
  CHECK(scores.metrics.at("num_reward_failures") < 12);  // 8 and what ran beside them
  SAYS(scores.why_invalid, "ended with exit status 3");
}

TEST_CASE("the first answer of a program may take longer") {
  Script script;
  const Json command = {"python3", script.file.string(), "1"};
  CHECK(score(*script.make({{"command", command}, {"timeout_s", 0.5}, {"retries", 0}}), {"good"}).rewards == Floats{1});
  const std::string error = error_of([&] {
    score(*script.make({{"command", command}, {"timeout_s", 0.2}, {"startup_timeout_s", 0.1}, {"retries", 0}}),
          {"good"});
  });
  const std::string wanted = "did not answer within ";
  SAYS(error, wanted);
  CHECK(std::stod(error.substr(error.find(wanted) + wanted.size())) >= 0.299);
}

TEST_CASE("several threads score at the same time") {
  Script script;
  const auto environment = script.make({{"num_workers", 3}, {"retries", 0}});
  std::atomic<int> right = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        const Scores scores = score(*environment, {"good", "half", "die", "bad", "good"});
        right += scores.rewards == Floats{1, 0.5f, 0, 0, 1} && scores.invalid == Flags{0, 0, 1, 0, 0};
      }
    });
  }
  threads.clear();
  CHECK(right == 12);
}

TEST_CASE("an interruption is waited for as long as rewards are nearly there, and then ends the call") {
  Script script;
  const auto environment = script.make();
  score(*environment, {"good", "good"});
  script.interrupted = 1;
  CHECK(score(*environment, {"slow:0.5", "good"}).invalid == Flags{0, 0});
  const auto began = std::chrono::steady_clock::now();
  std::string what;
  try {
    score(*environment, {"hang", "good", "hang", "hang"});
  } catch (const Interrupted& interrupted) {
    what = interrupted.what();
  }
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(100));
  SAYS(what, "env.mine: interrupted, and ");
  SAYS(what, " of 4 rewards of step 3 have not come");
  script.interrupted = 0;
  CHECK(score(*environment, {"good"}).rewards == Floats{1});
}

TEST_CASE("wrong keys of a program are refused") {
  Script script;
  const auto refuses = [&](const Json& section) { return error_of([&] { script.make(section); }); };
  SAYS(refuses({{"command", {"no-such-program"}}}), "env.mine.command: no program 'no-such-program' on PATH. Give its");
  SAYS(refuses({{"command", {script.file.string()}}}), "reward.py' that can be run. Give its path");
  SAYS(refuses({{"command", Json::array()}}), "env.mine.command: want a program, as [python3, reward.py]");
  SAYS(refuses({{"command", 3}}), "env.mine.command: want a list of texts, got 3");
  SAYS(refuses({{"timeout_s", 0}}), "env.mine.timeout_s: want seconds, more than 0, got 0");
  SAYS(refuses({{"timeout_s", "long"}}), "env.mine.timeout_s: want a number, got \"long\"");
  SAYS(refuses({{"num_workers", 0}}), "env.mine.num_workers: want a whole number of at least 1, got 0");
  SAYS(refuses({{"retries", 0.5}}), "env.mine.retries: want a whole number of at least 0, got 0.5");
  SAYS(refuses({{"components", {"a", "a"}}}), "env.mine.components: a name stands there twice");
  SAYS(refuses({{"retrys", 1}}), "env.mine.retrys: unknown key, did you mean 'retries'?");
  SAYS(refuses({{"plugin", "countdown"}}), "env.mine: has both plugin and command: keep one");
  SAYS(refuses({{"command", {"x"}}, {"plugin", "countdown"}}), "env.mine: has both command and plugin: keep one");
  SAYS(refuses({{"plugin", "countdown"}, {"type", "math"}}), "env.mine: has plugin, type and command: keep one");
}

TEST_SUITE_END();
