// env.NAME.python: functions as TRL and verl have them, in a user's own file, called by a real Python.
#include "tests/environment/scripted_program.hpp"

using namespace scripted;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

using Floats = std::vector<float>;

// A file of this text as env.mine, and samples of two groups, two each: responses a to d.
struct File {
  explicit File(const std::string& text) { dir.write("mine.py", text); }

  std::unique_ptr<Environment> make(Json section = Json::object(), const std::string& function = "",
                                    int64_t num_steps = 0) const {
    section["python"] = (dir / "mine.py").string() + function;
    for (const auto& [key, value] : std::map<std::string, Json>{{"num_workers", 1}, {"retries", 0}})
      if (!section.contains(key)) section[key] = value;
    static plugin::Registry none({}, nullptr);
    return environment::make("mine", section, {none, {}, nullptr, num_steps});
  }
  Scores score(const Json& section = Json::object(), const std::string& function = "", int64_t num_steps = 0) const {
    Responses responses({"a", "b", "c", "d"});
    for (size_t i = 0; i < 4; ++i) {
      Sample& sample = responses.samples[i];
      sample.prompt = "what", sample.ground_truth = answers[i], sample.group = i / 2, sample.metadata = &rows[i];
    }
    return make(section, function, num_steps)->score(responses.samples, 3);
  }
  // What the run ends with.
  std::string refusal(const Json& section = Json::object(), const std::string& function = "") const {
    return error_of([&] { score(section, function); });
  }

  toy::TempDir dir;
  std::vector<std::string> answers = {"a", "x", "c", "x"};
  std::vector<Json> rows = {{{"level", 1}}, {{"level", 2}, {"data_source", "gsm8k"}}, Json::object(), {{"level", 4}}};
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("TRL's form: lists of completions and of every column, and a list of scores") {
  const File file(R"PY(
def reward(completions, **columns):
    print("said by the reward")
    assert completions == ["a", "b", "c", "d"] and columns["prompts"] == ["what"] * 4
    assert columns["level"] == [1, 2, None, 4] and columns["data_source"] == [None, "gsm8k", None, None]
    assert columns["step"] == 3 and columns["num_steps"] == 60
    assert columns["trainer_state"].global_step == 3 and columns["trainer_state"].max_steps == 60
    assert columns["ground_truth"] == columns["answer"] == columns["solution"] == ["a", "x", "c", "x"]
    return [float(c == a) for c, a in zip(completions, columns["ground_truth"])]
)PY");
  const Scores scores = file.score({}, "", 60);
  CHECK(scores.rewards == Floats{1, 0, 1, 0});
  CHECK(scores.invalid == std::vector<uint8_t>(4, 0));
}

TEST_CASE("the expected answers stand under whatever name the function has for them; where nothing is known, None") {
  const File file(
      "def r(prompts, completions, truth, step, num_steps, level=None):\n"
      "    assert num_steps is None and level == [1, 2, None, 4], (num_steps, level)\n"
      "    return [c == t for c, t in zip(completions, truth)]\n");
  CHECK(file.score().rewards == Floats{1, 0, 1, 0});
}

TEST_CASE("verl's forms: a sample at a time, or lists; a number or a dict") {
  const File one(
      "def compute_score(data_source, solution_str, ground_truth, extra_info=None, strict=True):\n"
      "    assert isinstance(extra_info, dict)\n"
      "    right = solution_str == ground_truth\n"
      "    return {'score': right, 'form': 0.5 if data_source else 0.25, 'note': 'x'}\n");
  const Scores scores = one.score({{"components", {"form"}}});
  CHECK(scores.rewards == Floats{1, 0, 1, 0});
  CHECK(scores.components.at("form") == Floats{0.25f, 0.5f, 0.25f, 0.25f});
  CHECK(one.score().components.empty());
  const File lists(
      "def compute_score(data_sources, solution_strs, ground_truths, extra_infos):\n"
      "    return [s == g for s, g in zip(solution_strs, ground_truths)]\n");
  CHECK(lists.score().rewards == Floats{1, 0, 1, 0});
}

TEST_CASE("completions as messages, where the function wants them so; async functions; the function that is named") {
  const std::string text =
      "import asyncio\n"
      "async def slow(completions, **kwargs):\n"
      "    await asyncio.sleep(0)\n"
      "    return [c[0]['content'] == 'b' and c[0]['role'] == 'assistant' for c in completions]\n"
      "def _helper(): pass\n"
      "def other(completions): return [2] * len(completions)\n";
  const File file(text);
  CHECK(file.score({{"conversational", true}}, ":slow").rewards == Floats{0, 1, 0, 0});
  CHECK(file.score({}, ":other").rewards == Floats{2, 2, 2, 2});
  SAYS(file.refusal({}, ":slow"),
       "completions are texts; for [{'role': 'assistant', 'content': ...}] each set "
       "conversational: true");
  SAYS(file.refusal(), "mine.py has the functions slow, other: say which, as ");
  SAYS(file.refusal({}, ":fast"), "mine.py has no function 'fast'; it has: slow, other. Try it by hand");
}

TEST_CASE("a call that hangs holds a step for timeout_s once, and one by one only the bad sample has no reward") {
  const File file(
      "import time\n"
      "def reward(completions):\n"
      "    if 'b' in completions: time.sleep(1000)\n"
      "    return [1.0] * len(completions)\n");
  const auto began = std::chrono::steady_clock::now();
  const Json section = {{"timeout_s", 1}, {"startup_timeout_s", 5}, {"retries", 1}, {"deadline_s", 60}};
  const Scores scores = file.score(section);
  CHECK(scores.rewards == Floats{1, 0, 1, 1});
  CHECK(scores.invalid == std::vector<uint8_t>{0, 1, 0, 0});
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(64));
}

TEST_CASE("groups stay whole, and are dealt to the copies") {
  const File file("def reward(completions): return [len(completions)] * len(completions)\n");
  CHECK(file.score().rewards == Floats{4, 4, 4, 4});
  CHECK(file.score({{"num_workers", 2}}).rewards == Floats{2, 2, 2, 2});
  CHECK(file.score({{"num_workers", 4}}).rewards == Floats{2, 2, 2, 2});
  CHECK(file.score({{"batch_size", 3}}).rewards == Floats{3, 3, 3, 1});
  CHECK(file.score({{"batch_size", 1}}).rewards == Floats{1, 1, 1, 1});
}

TEST_CASE("None: the reward does not apply. Alone it makes a sample invalid, to a sum it adds nothing") {
  const File file(
      "def reward(completions, level, **_):\n"
      "    return [None if l is None else l for l in level]\n");
  const Scores alone = file.score();
  CHECK(alone.invalid == std::vector<uint8_t>{0, 0, kNotApplicable, 0});
  SAYS(alone.why_invalid, "score 2 of reward of ");
  const Json parts = {{{"name", "mine"}, {"weight", 2}, {"python", (file.dir / "mine.py").string()}},
                      {{"name", "exact_answer"}, {"weight", 0}}};
  const auto sum_of = [&](Json rewards) {
    static plugin::Registry none({}, nullptr);
    Responses responses({"a", "b", "c", "d"});
    for (size_t i = 0; i < 4; ++i)
      responses.samples[i].ground_truth = file.answers[i], responses.samples[i].metadata = &file.rows[i];
    return make("sum", Json{{"rewards", std::move(rewards)}}, {none})->score(responses.samples, 1);
  };
  CHECK(sum_of(parts).invalid == std::vector<uint8_t>{0, 0, kNotApplicable, 0});  // nothing else has a weight
  Json both = parts;
  both[1]["weight"] = 1;
  const Scores sum = sum_of(both);
  CHECK(sum.invalid == std::vector<uint8_t>(4, 0));
  CHECK(sum.rewards == Floats{3, 4, 1, 8});
}

TEST_CASE("what is wrong is said with the user's own lines, and ends the run") {
  const auto says = [](const std::string& text, const std::string& words) {
    const File file(text);
    const std::string refusal = file.refusal();
    SAYS(refusal, words);
    SAYS(refusal, "env.mine: the program `python3 ");
    CHECK_MESSAGE(!contains(refusal, "<string>"), refusal);  // our own frames
  };
  says("def reward(completions):\n    return [1 / len(c[1:]) for c in completions]\n",
       "return [1 / len(c[1:]) for c in completions]");
  says("def reward(completions):\n    return [1 / len(c[1:]) for c in completions]\n",
       "ZeroDivisionError: division by");
  says("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'");
  says("def reward(completions)\n", "SyntaxError: expected ':'");
  says("raise SystemExit('no licence')\n", "SystemExit: no licence");
  says("x = 1\n", "has no function: define reward(completions, **columns)");
  says("def reward(completions): return [1.0]\n", "returned 1 scores for 4 completions");
  says("def reward(completions): return 1.0\n", "returned 1.0, wanted a list with a score for each completion");
  says("def reward(completions): return ['1'] * 4\n", "score 0 of reward of ");
  says("def reward(completions): return ['1'] * 4\n",
       "is '1', wanted a number, or None where the reward does not apply");
  says("def reward(completions): return [0, float('nan'), 0, 0]\n", "is nan, wanted a finite number");
  says("def reward(completions, a, b): return [0] * 4\n", "wants a, b; there are: answer, completions, ");
  says("def reward(completions, completion_ids): return [0] * 4\n", "wants completion_ids; there are: ");
  says("def reward(*args): return [0] * 4\n", "takes *args; wanted names: reward(completions, **columns)");
  says("def reward(completions): return [{'acc': 1}] * 4\n", "is a dict without 'score': {'acc': 1}");
}

TEST_CASE("what a file's own code prints, starts and reads is no answer and no request") {
  const File file(
      "import os, subprocess\n"
      "os.write(1, b'by descriptor 1\\n')\n"
      "def reward(completions):\n"
      "    subprocess.run(['echo', 'by a child'], check=True)\n"
      "    assert subprocess.run(['cat'], check=True, stdout=subprocess.PIPE).stdout == b''\n"
      "    return [0.25] * len(completions)\n");
  CHECK(file.score().rewards == Floats(4, 0.25f));
}

TEST_CASE("a file beside it is imported, in the strict sandbox too") {
  const File file("from helper import value\ndef reward(completions): return [value()] * len(completions)\n");
  file.dir.write("helper.py", "def value(): return 0.75\n");
  CHECK(file.score({{"sandbox", "strict"}}).rewards == Floats(4, 0.75f));
}

TEST_CASE("keys of env.NAME.python") {
  const File file("def reward(completions): return [0] * len(completions)\n");
  const auto refused = [&](const Json& more, const std::string& words) {
    SAYS(error_of([&] { file.make(more); }), words);
  };
  refused({{"interpreter", "python99"}}, "env.mine.interpreter: no program 'python99' on PATH");
  refused({{"command", {"sh"}}}, "env.mine: has both command and python: keep one");
  refused({{"conversatonal", true}}, "env.mine.conversatonal: unknown key, did you mean 'conversational'?");
  static plugin::Registry none({}, nullptr);
  const auto made = [&](const Json& section) { return error_of([&] { make("mine", section, {none}); }); };
  SAYS(made({{"python", "nope.py"}}), "env.mine.python: there is no such file: nope.py");
  SAYS(made({{"python", 3}}), "env.mine.python: want ");
  SAYS(made({{"command", {"sh"}}, {"conversational", true}}), "env.mine.conversational: unknown key");
}

TEST_SUITE_END();
