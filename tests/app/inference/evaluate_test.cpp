// Evaluation: samples of a data set, scored; pass@k; what is saved. In this process, on the toy generator.
#include "app/inference/evaluate.hpp"

#include <random>

#include "app/inference/score_at_k.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::contains;
using plugin_test::error_of;
using plugin_test::Json;

namespace {

struct Evaluated {
  explicit Evaluated(const std::vector<std::string>& overrides) {
    std::vector<std::string> all = {"++eval.save_path=" + (dir / "out").string()};
    all.insert(all.end(), overrides.begin(), overrides.end());
    const config::Resolved resolved = config::resolve(dir.write("toy.yaml", toy::config_text(dir.path())), all);
    result = inference::evaluate(resolved, {});
    std::ifstream in(dir / "out/samples.jsonl");
    for (std::string line; std::getline(in, line);) samples.push_back(Json::parse(line));
  }
  toy::TempDir dir;
  inference::Evaluation result;
  std::vector<Json> samples;
};

// By counting: the share of sets of k of n samples that hold one of the first c.
double counted(int n, int c, int k) {
  double sets = 0, good = 0;
  for (unsigned set = 0; set < 1u << n; ++set) {
    if (__builtin_popcount(set) != k) continue;
    ++sets, good += (set & ((1u << c) - 1)) != 0;
  }
  return good / sets;
}

using inference::Vote;

// By going through the sets, as NeMo-RL does.
double voted(const std::vector<Vote>& votes, int k) {
  double sets = 0, good = 0;
  for (unsigned set = 0; set < 1u << votes.size(); ++set) {
    if (__builtin_popcount(set) != k) continue;
    std::map<std::string, int> counts;
    std::vector<const Vote*> in_order;  // the first of each answer
    for (size_t i = 0; i < votes.size(); ++i)
      if ((set >> i & 1) && counts[votes[i].answer]++ == 0) in_order.push_back(&votes[i]);
    const auto winner = std::ranges::max_element(in_order, {}, [&](const Vote* vote) { return counts[vote->answer]; });
    ++sets, good += (*winner)->right;
  }
  return good / sets;
}

}  // namespace

TEST_CASE("pass@k is the share of sets of k samples with a right one") {
  for (int n = 1; n <= 7; ++n) {
    for (int c = 0; c <= n; ++c) {
      for (int k = 1; k <= n; ++k) CHECK(inference::pass_at_k(n, c, k) == doctest::Approx(counted(n, c, k)));
    }
  }
  CHECK(inference::pass_at_k(100000, 1, 50000) == doctest::Approx(0.5));
}

TEST_CASE("cons@k is the share of sets of k samples whose most frequent answer is right") {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<Vote> votes(1 + random() % 9);
    for (Vote& vote : votes) {
      vote.answer = std::string(1, static_cast<char>('a' + random() % 4));
      vote.right =
          round % 3 == 0 ? random() % 2 : vote.answer == "a";  // also where equal answers are not equally right
    }
    for (int k = 1; k <= static_cast<int>(votes.size()); ++k)
      CHECK(inference::consensus_at_k(votes, k) == doctest::Approx(voted(votes, k)));
  }
  std::vector<Vote> many(64, Vote{"wrong", false});  // 33 of 64 are right
  for (int i = 0; i < 33; ++i) many[2 * (i % 32) + (i == 32)] = {"right", true};
  CHECK(inference::consensus_at_k(many, 64) == doctest::Approx(1));
  CHECK(inference::consensus_at_k(many, 1) == doctest::Approx(33.0 / 64));
}

TEST_CASE("cons@k counts the answers that environments tell") {
  const std::vector<std::string> eight = {"++eval.metric=cons@k", "++eval.num_tests_per_prompt=8", "++eval.k_value=3",
                                          "policy.generation.max_new_tokens=1"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> all = eight;
    all.push_back(more);
    return all;
  };
  const Evaluated run(eight);
  double score = 0;
  for (int prompt = 0; prompt < 16; ++prompt) {
    std::vector<Vote> votes;
    for (int i = 0; i < 8; ++i) {
      const Json& sample = run.samples[prompt * 8 + i];
      CHECK(sample.at("answer") == sample.at("response"));
      votes.push_back({sample.at("answer"), sample.at("reward") == 1});
    }
    score += voted(votes, 3);
  }
  CHECK(run.result.score == doctest::Approx(score / 16));
  CHECK(run.result.score != Evaluated(with("eval.metric=pass@k")).result.score);

  // Of a program: what it tells, or an error that names the way out.
  const toy::TempDir dir;
  const auto program = [&](const std::string& name, const std::string& more) {
    const auto file = dir.write(
        name,
        "import json, sys\nfor line in sys.stdin:\n  r = json.loads(line)\n  print(json.dumps({'id': r['id'], "
        "'reward': r['response'] == r['ground_truth']" +
            more + "}), flush=True)\n");
    return with("env={exact_answer: {command: [python3, " + file.string() + "]}}");
  };
  CHECK(Evaluated(program("tells.py", ", 'answer': ord(r['response'][0]) if r['response'] else None")).result.score ==
        doctest::Approx(run.result.score));
  CHECK(contains(error_of([&] { Evaluated(program("mute.py", "")); }),
                 "eval.metric: got cons@k, which counts equal answers, and env.exact_answer tells no answers"));
}

TEST_CASE("every prompt is drawn so many times, and the score is what was saved comes to") {
  const Evaluated eight({"++eval.num_tests_per_prompt=8", "++eval.k_value=4"});
  REQUIRE(eight.samples.size() == 16 * 8);  // the validation set
  CHECK(eight.result.prompts == 16);
  double score = 0, right = 0;
  for (int prompt = 0; prompt < 16; ++prompt) {
    int passed = 0;
    for (int i = 0; i < 8; ++i) {
      const Json& sample = eight.samples[prompt * 8 + i];
      CHECK(sample.at("prompt") == eight.samples[prompt * 8].at("prompt"));
      passed += sample.at("response") == sample.at("expected_answer");
      CHECK(sample.at("reward") == (sample.at("response") == sample.at("expected_answer") ? 1 : 0));
    }
    score += counted(8, passed, 4), right += passed;
  }
  CHECK(eight.result.score == doctest::Approx(score / 16));
  CHECK(eight.result.right == right);
  CHECK(eight.result.metrics.at("pass@4") == doctest::Approx(score / 16));
  CHECK(eight.result.metrics.at("pass@1") == doctest::Approx(right / 128));
  CHECK(eight.result.metrics.at("reward") == doctest::Approx(right / 128));
  const Json scores = Json::parse(plugin_test::read_text(eight.dir / "out/scores.json"));
  CHECK(scores.at("score") == eight.result.score);
  CHECK(toy::fs::exists(eight.dir / "out/config.yaml"));
}

TEST_CASE("a sample that could not be scored counts nowhere") {
  const toy::TempDir dir;
  const auto with = [&](const std::string& condition, int k) {
    const auto file = dir.write("half.py",
                                "import json, sys\nn = 0\nfor line in sys.stdin:\n  r = json.loads(line)\n"
                                "  a = {'id': r['id'], 'reward': 1.0}\n  if " +
                                    condition +
                                    ": a = {'id': r['id'], 'invalid': True}\n"
                                    "  n += 1\n  print(json.dumps(a), flush=True)\n");
    return Evaluated({"env={exact_answer: {command: [python3, " + file.string() + "], num_workers: 1}}",
                      "++eval.num_tests_per_prompt=4", "++eval.k_value=" + std::to_string(k)});
  };
  const Evaluated half = with("n % 2", 2);  // two of each prompt's four
  CHECK(half.result.score == 1);
  CHECK(half.result.metrics.at("reward") == 1);
  CHECK(half.result.metrics.at("pass@1") == 1);
  CHECK(half.result.metrics.at("invalid_rate") == 0.5);
  CHECK(half.result.unscored == 0);
  const Evaluated few = with("n < 8 and n % 4", 3);  // of the first two prompts one
  CHECK(few.result.unscored == 2);
  CHECK(few.result.score == 1);
  CHECK(inference::to_json(few.result).at("prompts_without_score") == 2);
  CHECK(contains(error_of([&] { with("n % 2", 3); }), "not one of the 16 prompts has the 3 scored samples"));
}

TEST_CASE("what cannot be saved loses no score, and is told with the reason") {
  for (const char* file : {"scores.json", "samples.jsonl"}) {
    const toy::TempDir dir;
    toy::fs::create_directories(dir / "full");
    toy::fs::create_symlink("/dev/full", dir / "full" / file);
    const Evaluated got({"eval.save_path=" + (dir / "full").string()});
    CHECK(got.result.prompts == 16);
    CHECK_MESSAGE(contains(got.result.not_saved, "eval.save_path: "), got.result.not_saved);
    CHECK_MESSAGE(contains(got.result.not_saved, std::string(file)), got.result.not_saved);
    CHECK_MESSAGE(contains(got.result.not_saved, "No space left on device"), got.result.not_saved);
  }
  CHECK(Evaluated({}).result.not_saved.empty());
}

TEST_CASE("prompts that do not fit are told of, and an evaluation of none is an error") {
  CHECK(contains(error_of([] { Evaluated({"data.max_input_seq_length=2"}); }),
                 "data.max_input_seq_length: not one of the 16 prompts fits into 1 tokens"));
}

TEST_CASE("an evaluation is the same every time, drawn in whatever parts it is asked for") {
  const Evaluated one({"++eval.num_tests_per_prompt=4"}), other({"++eval.num_tests_per_prompt=4"}),
      parts({"++eval.num_tests_per_prompt=4", "++eval.num_prompts_per_step=5"});
  CHECK(one.samples == other.samples);
  CHECK(one.samples != Evaluated({"++eval.num_tests_per_prompt=4", "++eval.seed=9"}).samples);
  CHECK(parts.samples == one.samples);
  CHECK(parts.result.score == one.result.score);
  CHECK(parts.result.metrics.at("truncation_rate") == doctest::Approx(one.result.metrics.at("truncation_rate")));
}

TEST_CASE("temperature 0 is the most likely token") {
  const Evaluated greedy({"policy.generation.temperature=0", "~grpo"}),
      again({"policy.generation.temperature=0", "~grpo", "++eval.seed=9"});
  CHECK(greedy.samples == again.samples);
}
