// `hexad data show --score generated`: rewards of what the quickstart's model answers before any training, by the
// ordinary generator.
#include "tests/run/first_party.hpp"
#include "tests/support/said.hpp"

using plugin_test::contains;
using plugin_test::Json;
using toy::Ended;
using toy::TempDir;

namespace {

Ended show(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"data", "show", "quickstart", "cluster.device=cpu"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return toy::run(arguments, "", /*timeout_s=*/300);
}

std::vector<Json> objects(const std::string& text) {
  std::vector<Json> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(Json::parse(line));
  return all;
}

// The override of a reward program that gives sample i a reward of i + 0.25 and tells what it was asked, a line a
// request, in the file asked.jsonl. Sample `bad` has none.
std::string telling(const TempDir& dir, int bad = -1) {
  const auto script = dir.write("reward.py", R"PY(
import json, sys
told = open(sys.argv[1], "a")
for line in sys.stdin:
    told.write(line), told.flush()
    asked = json.loads(line)
    said = {"reward": asked["id"] + 0.25, "components": {"tokens": asked["response_tokens"]}}
    if asked["id"] == int(sys.argv[2]): said = {"invalid": True, "reason": "no ruler"}
    print(json.dumps({"id": asked["id"], **said}), flush=True)
)PY");
  return fmt::format("++env.exact_answer={{command: [python3, {}, {}, '{}'], num_workers: 1, components: [tokens]}}",
                     script.string(), (dir / "asked.jsonl").string(), bad);
}

std::vector<Json> asked(const TempDir& dir) { return objects(toy::read_text(dir / "asked.jsonl")); }

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n"), end = text.find_last_not_of(" \n");
  return begin == text.npos ? "" : text.substr(begin, end - begin + 1);
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("each row has the reward of its own generated answer, and the page says what the objects say") {
  const TempDir dir, again;
  const Ended json = show({"--rows", "5", "--json", "--score", "generated", telling(dir)});
  INFO(json.err);
  REQUIRE(json.code == 0);
  const std::vector<Json> rows = objects(json.out), requests = asked(dir);
  REQUIRE(rows.size() == 5);
  REQUIRE(requests.size() == 5);
  const Ended page = show({"--rows", "5", "--score", "generated", telling(again)});
  CHECK_MESSAGE(page.code == 0, page.err);
  for (int i = 0; i < 5; ++i) {
    const Json &row = rows[i], &request = requests[i];
    CAPTURE(row.dump());
    CHECK(row.at("response") == request.at("response"));
    CHECK(row.at("text") == request.at("prompt"));
    CHECK(row.at("expected") == request.at("ground_truth"));
    CHECK(row.at("token_ids").size() == request.at("prompt_tokens"));
    CHECK(row.at("reward") == i + 0.25);
    const int tokens = request.at("response_tokens");
    CHECK(tokens >= 1);
    CHECK(tokens <= 2);  // policy.generation.max_new_tokens
    CHECK(row.at("components") == Json{{"tokens", tokens}});
    CHECK_FALSE(row.contains("no_reward"));
    SAYS(page.out, fmt::format("\nreward: {}.25 (tokens {})\n\n", i, tokens));
  }
  SAYS(page.out, "\nrewards of 5 rows: mean 2.25, 0.25 to 4.25\n2,048 rows, by tokens:\n");
  const std::vector<Json> same = asked(again);  // the same seed, the same weights
  for (int i = 0; i < 5; ++i) CHECK(same.at(i).at("response") == requests[i].at("response"));
}

TEST_CASE("the run's own reward is 1 where the model says what is expected, and 0 elsewhere") {
  const Ended json = show({"--rows", "100", "--json", "--score", "generated"});
  INFO(json.err);
  REQUIRE(json.code == 0);
  const std::vector<Json> rows = objects(json.out);
  REQUIRE(rows.size() == 100);
  std::set<std::string> responses;
  double sum = 0;
  for (const Json& row : rows) {
    const std::string response = row.at("response");
    CAPTURE(row.dump());
    CHECK(row.at("reward") == (trimmed(response) == row.at("expected") ? 1 : 0));
    sum += row.at("reward").get<double>();
    responses.insert(response);
  }
  CHECK(responses.size() > 10);  // sampled from random weights
  CHECK(sum < 40);
  const Ended page = show({"--rows", "100", "--score", "generated"});
  SAYS(page.out, fmt::format("\nrewards of 100 rows: mean {:.4g}, ", sum / 100));
}

TEST_CASE("a generated answer without a reward says why; where no answer has one the command ends with the reason") {
  const TempDir dir;
  const std::string why = "env.exact_answer: the program says that it cannot score it: no ruler";
  const Ended page = show({"--rows", "3", "--score", "generated", telling(dir, 1)});
  CHECK_MESSAGE(page.code == 0, page.err);
  SAYS(page.out, "\nreward: none, " + why + "\n\n");
  SAYS(page.out, "\nrewards of 2 rows: mean 1.25, 0.25 to 2.25; 1 more have none\n");
  const Ended json = show({"--rows", "3", "--json", "--score", "generated", telling(dir, 1)});
  const std::vector<Json> rows = objects(json.out);
  REQUIRE(rows.size() == 3);
  CHECK(rows[1].at("reward").is_null());
  CHECK(rows[1].at("no_reward") == why);
  CHECK(rows[2].at("reward") == 2.25);
  const Ended all = show({"--rows", "1", "--json", "--score", "generated", telling(dir, 0)});
  CHECK(all.code == 4);
  CHECK(all.out.empty());
  SAYS(all.err, "rewards: not one of the 1 samples of step 0 could be scored");
  SAYS(all.err, "The first reason: " + why);
  const Ended silent =
      show({"--rows", "1", "--score", "generated", "++env.exact_answer={command: ['false'], retries: 0}"});
  CHECK(silent.code == 2);
  SAYS(silent.err, "env.exact_answer: the program `false` has never answered");
}

TEST_CASE("a generator that is not there ends the command before anything is generated") {
  const Ended missing = show({"--score", "generated", "policy.generation.backend=nobody"});
  CHECK(missing.code == 2);
  CHECK(missing.out.empty());
  SAYS(missing.err, "policy.generation.backend: generator plugin 'nobody' not found. searched: ");
  CHECK_FALSE(contains(missing.err, "loaded backend"));
}

TEST_SUITE_END();
