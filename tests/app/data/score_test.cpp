// `hexad data show --score`: rewards of rows before any training.
#include "app/data/score.hpp"

#include <sstream>

#include "app/data/show.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;
using namespace hexad;

namespace {

// `data show` of the toy's run.
Ended show(const TempDir& dir, Arguments more) {
  Arguments arguments = train(dir, {});
  more.insert(more.begin(), {"data", "show", arguments[1]});
  return toy::run(more);
}

std::vector<Json> objects(const std::string& text) {
  std::vector<Json> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(Json::parse(line));
  return all;
}

}  // namespace

TEST_CASE("rows are scored together, dropped ones left out, and one without a reward says why") {
  const TempDir dir;
  config::RunConfig run;
  run.policy.max_total_sequence_length = run.data.max_input_seq_length = 6;
  config::DatasetConfig set;
  set.dataset_name = "ResponseDataset";
  set.processor = "math_hf_data_processor";
  set.data_path =
      dir.write("rows.jsonl",
                "{\"question\": \"ab\", \"answer\": \"c\"}\n{\"question\": \"abcdefgh\", \"answer\": \"a\"}\n"
                "{\"question\": \"b\", \"answer\": \"d\"}\n{\"question\": \"c\", \"answer\": \"e\"}\n")
          .string();
  run.data.train = {set};
  const rollout::ModelText text = rollout::load_model_text(toy::source_dir() / "configs/quickstart_model", {});
  std::vector<std::string> asked;
  const dataset_view::Scorer scorer = [&](std::span<const data::SharedDatum> prompts) {
    std::vector<dataset_view::Scored> scores;
    for (const data::SharedDatum& prompt : prompts) {
      asked.push_back(prompt->answer);
      if (prompt->answer == "e")
        scores.push_back({"e", std::nullopt, "no\nruler", {}});
      else
        scores.push_back({prompt->answer == "c" ? "x" : "d", prompt->answer == "c" ? 0.25f : 1.0f, "", {{"form", 1}}});
    }
    return scores;
  };
  std::ostringstream page, json;
  dataset_view::show(run, text, {.rows = 4, .score = scorer}, page);
  CHECK(asked == std::vector<std::string>{"c", "d", "e"});
  SAYS(page.str(), "expected: c\nresponse: x\nreward: 0.25 (form 1)\n\n");
  SAYS(page.str(), "expected: d\nreward: 1 (form 1)\n\n");
  SAYS(page.str(), "expected: e\nreward: none, no\\nruler\n\n");
  SAYS(page.str(), "\nrewards of 2 rows: mean 0.625, 0.25 to 1; 1 more have none\n4 rows, by tokens:\n");
  dataset_view::show(run, text, {.rows = -1, .json = true, .score = scorer}, json);
  const std::vector<Json> rows = objects(json.str());
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].at("response") == "x");
  CHECK(rows[0].at("reward") == 0.25);
  CHECK(rows[0].at("components") == Json{{"form", 1.0}});
  CHECK_FALSE(rows[1].contains("reward"));
  CHECK(rows[1].contains("dropped"));
  CHECK(rows[3].at("reward").is_null());
  CHECK(rows[3].at("no_reward") == "no\nruler");
}

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("the run's own rewards say what the expected answers are worth") {
  const TempDir dir;
  const Ended expected = show(dir, {"--rows", "2", "--score", "expected"});
  INFO(expected.err);
  CHECK(expected.code == 0);
  SAYS(expected.out, "\nreward: 1\n\n");
  SAYS(expected.out, "\nrewards of 2 rows: mean 1, 1 to 1\n");
  CHECK_FALSE(contains(expected.out, "response: "));
}

TEST_CASE("a reward program's reason is shown, and a program that never answers ends the command") {
  const TempDir dir;
  const auto script = dir.write("reward.py",
                                "import json\n"
                                "while True:\n"
                                "  asked = json.loads(input())\n"
                                "  said = {'invalid': True, 'reason': 'no ruler'} if asked['id'] else {'reward': 0.5}\n"
                                "  print(json.dumps({'id': asked['id'], **said}), flush=True)\n");
  const auto program = [](const std::string& command) {
    return "++env.exact_answer={command: [" + command + "], num_workers: 1, retries: 0}";
  };
  const Ended told = show(dir, {"--rows", "2", "--score", "expected", program("python3, " + script.string())});
  INFO(told.err);
  CHECK(told.code == 0);
  SAYS(told.out, "\nreward: 0.5\n\n");
  SAYS(told.out, "\nreward: none, env.exact_answer: the program says that it cannot score it: no ruler\n\n");
  SAYS(told.out, "\nrewards of 1 row: mean 0.5, 0.5 to 0.5; 1 more have none\n");
  const Ended silent = show(dir, {"--rows", "2", "--score", "expected", program("'false'")});
  CHECK(silent.code == 2);
  SAYS(silent.err, "env.exact_answer: the program `false` has never answered");
}

TEST_CASE("a run without rewards is refused, and so is another word") {
  const std::string sft = (toy::source_dir() / "configs/sft_quickstart.yaml").string();
  for (const char* which : {"expected", "generated"}) {
    const Ended refused = toy::run({"data", "show", sft, "--score", which});
    CHECK(refused.code == 2);
    SAYS(refused.err, "--score: sft has no rewards. Want a configuration of GRPO (a block `grpo`)");
  }
  CHECK(toy::run({"data", "show", sft, "--score", "mine"}).code == 2);
}
