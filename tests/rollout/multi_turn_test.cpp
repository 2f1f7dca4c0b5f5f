// Rollouts of several turns: an environment replies, and the sample goes on from the tokens that were sampled.
#include <cmath>
#include <latch>

#include "core/rollout/group_stream.hpp"
#include "core/rollout/scorer.hpp"
#include "core/rollout/turns.hpp"
#include "tests/support/borrowed.hpp"
#include "tests/support/toy/program.hpp"
#include "tests/support/toy/workers.hpp"

using namespace hexad;
using namespace hexad::rollout;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

constexpr int32_t kQuestion = 1, kEnd = 2, kAnswer = 3;  // of the quickstart's tokenizer

// Replies "a" until it has done so `replies` times, with 1 a turn; state counts the turns, the reward's part is their
// number.
struct Talker : environment::Environment {
  int64_t replies = 0;
  bool invalid_at_last = false;
  mutable std::vector<std::string> responses;  // every one that it has seen
  mutable int64_t calls = 0, cut_off = 0;

  environment::Scores score(std::span<const environment::Sample> samples, int64_t) const override {
    environment::Scores scores;
    ++calls;
    scores.metrics = {{"num_asked", samples.size()}, {"mean_turn", 0}};
    for (const environment::Sample& sample : samples) {
      const int64_t turn = sample.state ? sample.state->get<int64_t>() : 0;
      CHECK(turn == sample.turn);
      CHECK(static_cast<int64_t>(sample.tokens.size()) == sample.prompt_tokens + sample.response_tokens);
      responses.emplace_back(sample.response), cut_off += sample.truncated;
      scores.metrics["mean_turn"] += static_cast<double>(turn) / static_cast<double>(samples.size());
      const bool over = turn == replies;
      scores.rewards.push_back(1);
      scores.invalid.push_back(over && invalid_at_last);
      scores.components["turns"].push_back(0.5f);
      scores.states.emplace_back(turn + 1);
      scores.replies.emplace_back();
      if (!over) scores.replies.back() = {"a"};
    }
    return scores;
  }
};

struct Fixture {
  explicit Fixture(int64_t replies, bool invalid_at_last = false) {
    auto made = std::make_unique<Talker>();
    made->replies = replies, made->invalid_at_last = invalid_at_last;
    talker = made.get();
    environments["talker"] = std::move(made);
    for (std::vector<int64_t> ids : {std::vector<int64_t>{1, 4, 3}, {1, 5, 6, 3}}) {
      data.emplace_back();
      data.back().token_ids = std::move(ids);
      data.back().env_name = "talker";
    }
    how.max_new_tokens = 3;
    how.max_total_tokens = 64;
    how.stop_token_ids = {kEnd};
  }
  std::vector<data::SharedDatum> prompts() const {
    std::vector<data::SharedDatum> all;
    for (const data::Datum& datum : data) all.push_back(test_support::borrowed(datum));
    return all;
  }
  Plan plan(int64_t turns, int64_t samples = 20) const {
    return {how, 2, samples, 7, 1, 0, turns, ends_when_truncated};
  }
  Rollout run(int64_t turns, int64_t samples = 20) {
    return run_rollout(generation, environments, text, prompts(), plan(turns, samples));
  }

  toy::InProcess workers;
  Generation generation{workers.group};
  ModelText text = load_model_text(toy::source_dir() / "configs/quickstart_model", {});
  Environments environments;
  Talker* talker = nullptr;
  std::vector<data::Datum> data;
  Sampling how;
  bool ends_when_truncated = false;
};

// Runs of tokens that the model wrote, of a row.
std::vector<std::vector<int64_t>> written(const data::Batch& batch, int64_t row) {
  std::vector<std::vector<int64_t>> runs;
  const auto mask = batch.row<float>("token_mask", row);
  const auto tokens = batch.row<int64_t>("input_ids", row);
  for (size_t t = 1; t < mask.size(); ++t) {
    if (mask[t] == 1 && mask[t - 1] == 0) runs.emplace_back();
    if (mask[t] == 1) runs.back().push_back(tokens[t]);
  }
  return runs;
}

}  // namespace

TEST_CASE("a reply stands between two responses as the chat template writes it, and is not trained on") {
  Fixture fixture(/*replies=*/1);
  fixture.ends_when_truncated = true;
  const Rollout rollout = fixture.run(/*turns=*/4);
  const data::Batch& batch = rollout.batch;
  int64_t two_turns = 0;
  for (int64_t i = 0; i < batch.size(); ++i) {
    const auto tokens = batch.row<int64_t>("input_ids", i);
    const auto runs = written(batch, i);
    const bool cut = runs[0].back() != kEnd;  // by the limit of tokens: the sample has ended
    REQUIRE(runs.size() == (cut ? 1 : 2));
    CHECK(batch.row<float>("rewards", i)[0] == (cut ? 1 : 2));
    CHECK(rollout.components.at("turns")[i] == (cut ? 0.5f : 1.0f));
    CHECK(batch.row<uint8_t>("truncated", i)[0] == (runs.back().back() != kEnd));
    std::vector<int64_t> want = fixture.data[i / 20].token_ids;
    want.insert(want.end(), runs[0].begin(), runs[0].end());
    if (!cut) {
      for (const int64_t id : {kQuestion, 4, kAnswer}) want.push_back(id);  // "<question>a<answer>"
      want.insert(want.end(), runs[1].begin(), runs[1].end());
      ++two_turns;
    }
    CHECK(std::vector<int64_t>(tokens.begin(), tokens.end()) == want);
    const auto mask = batch.row<float>("token_mask", i), logprobs = batch.row<float>("generation_logprobs", i);
    for (size_t t = 0; t < mask.size(); ++t)
      CHECK(logprobs[t] == doctest::Approx(mask[t] == 1 ? -std::log(12.0) : 0.0));
  }
  CHECK(two_turns > 5);
  CHECK(rollout.metrics.at("total_turns") == 40 + two_turns);
  CHECK(rollout.metrics.at("max_turns_per_sample") == 2);
  CHECK(rollout.metrics.at("mean_env_tokens_per_sample") == doctest::Approx(3.0 * double(two_turns) / 40));
  CHECK(rollout.metrics.at("max_turns_reached_rate") == doctest::Approx(0));
}

TEST_CASE("a response that the limit of tokens cuts off is replied to as any other, unless it is to end its sample") {
  Fixture fixture(/*replies=*/2);
  fixture.how.max_new_tokens = 1;  // nearly every response is cut
  const Rollout goes_on = fixture.run(/*turns=*/3);
  int64_t ended_last = 0, cuts = 0;  // samples that were cut off at a turn before; responses
  for (int64_t i = 0; i < goes_on.batch.size(); ++i) {
    const auto runs = written(goes_on.batch, i);
    REQUIRE(runs.size() == 3);
    CHECK(goes_on.batch.row<float>("rewards", i)[0] == 3);
    const auto cuts_here = std::ranges::count_if(runs, [](const auto& run) { return run.back() != kEnd; });
    const bool cut = cuts_here > 0;
    cuts += cuts_here;
    CHECK(goes_on.batch.row<uint8_t>("truncated", i)[0] == cut);  // whichever it was
    ended_last += cut && runs.back().back() == kEnd;
    std::vector<int64_t> want = fixture.data[i / 20].token_ids;
    for (size_t k = 0; k < runs.size(); ++k) {
      if (k > 0)
        for (const int64_t id : {kQuestion, 4, kAnswer}) want.push_back(id);
      want.insert(want.end(), runs[k].begin(), runs[k].end());
    }
    const auto tokens = goes_on.batch.row<int64_t>("input_ids", i);
    CHECK(std::vector<int64_t>(tokens.begin(), tokens.end()) == want);
  }
  CHECK(goes_on.metrics.at("avg_turns_per_sample") == 3);
  CHECK(ended_last > 0);
  // Environments judge the response that they are given.
  CHECK(fixture.talker->cut_off == cuts);
  CHECK(goes_on.of_generators.at("toy_requests") == 3 * 40);  // of all turns
  fixture.ends_when_truncated = true;
  const Rollout ends = fixture.run(3);
  CHECK(ends.metrics.at("avg_turns_per_sample") < 2);
  CHECK(ends.metrics.at("truncation_rate") > 0.5);
}

TEST_CASE("turns have draws of their own, the same in every run") {
  Fixture fixture(/*replies=*/2);
  const Rollout one = fixture.run(3, 60), other = fixture.run(3, 60);
  CHECK(one.batch.at("input_ids") == other.batch.at("input_ids"));
  int64_t pairs = 0, equal = 0;
  for (int64_t i = 0; i < one.batch.size(); ++i) {
    const auto runs = written(one.batch, i);
    for (size_t k = 1; k < runs.size(); ++k) ++pairs, equal += runs[k] == runs[k - 1];
  }
  CHECK(pairs > 10);
  CHECK(equal < pairs / 2);
}

TEST_CASE("what environments report of several turns: counts add up, the rest is the mean over samples") {
  Fixture fixture(/*replies=*/1);
  const Rollout rollout = fixture.run(4);
  const double second = rollout.metrics.at("total_turns") - 40;
  CHECK(rollout.reported.values().at("num_asked") == 40 + second);
  CHECK(rollout.reported.values().at("mean_turn") == doctest::Approx(second / (40 + second)));
}

// As asynchronous runs do it: each group at its own pace, rewards on another thread.
TEST_CASE("turn by turn through a stream it is the same rollout, and every token has its version") {
  Fixture fixture(/*replies=*/2);
  const Rollout want = fixture.run(3);
  fixture.talker->calls = 0;
  const Plan plan = fixture.plan(3);
  cluster::WorkerGroup& workers = fixture.workers.group;
  GroupStream stream(workers, cluster::colocated(1));
  Scorer scorer(fixture.environments);
  std::map<int64_t, std::shared_ptr<Turns>> running;
  std::vector<Conversation> ended[2];
  const auto go_on = [&](int64_t key) {
    const std::vector<Request> requests = running.at(key)->requests(plan);
    if (!requests.empty()) return stream.submit({{key, requests}}, plan.sampling);
    ended[key] = std::move(running.at(key)->conversations());
    running.erase(key);
  };
  for (const int64_t key : {0, 1}) {
    running[key] = std::make_shared<Turns>(std::vector{fixture.prompts()[key]}, plan, key);
    go_on(key);
  }
  int64_t scored = 0;
  workers.meanwhile([&] {
    for (FinishedGroup& group : stream.take_finished()) {
      running.at(group.key)->add_responses(group.completions, std::move(group.columns), fixture.text);
      scorer.push({group.key, plan.step, running.at(group.key)});
    }
    for (const Scorer::Scored& some : scorer.take()) {
      for (const Scorer::Job& job : some.jobs) {
        scored += std::ssize(job.turns->newest());
        job.turns->add_replies(plan, fixture.text);
        go_on(job.key);
      }
    }
    return scorer.busy();
  });
  REQUIRE(workers.wait_until([&] { return running.empty(); }, toy::kPatienceS));
  workers.meanwhile(nullptr);
  CHECK_FALSE(scorer.busy());
  CHECK(static_cast<double>(scored) == want.metrics.at("total_turns"));
  CHECK(fixture.talker->calls <= 6);
  std::ranges::move(ended[1], std::back_inserter(ended[0]));
  const Rollout got = rollout_of(ended[0], data::Batch::of_lengths(std::vector<int64_t>(0)), 20, 1, {});
  for (const char* column : {"input_ids", "token_mask", "generation_logprobs", "rewards", "truncated", "prompt_length"})
    CHECK_MESSAGE(got.batch.at(column) == want.batch.at(column), column);
  for (const Conversation& one : ended[0]) {
    REQUIRE(one.versions.size() == one.tokens.size());
    for (size_t t = 0; t < one.versions.size(); ++t) CHECK((one.versions[t] >= 0) == (one.mask[t] == 1));
  }
}

TEST_CASE("turns of one step that wait are scored together, and an environment's error comes back") {
  struct Slow : environment::Environment {
    mutable std::latch all_wait{1};
    environment::Scores score(std::span<const environment::Sample> samples, int64_t step) const override {
      all_wait.wait();
      if (step == 9) throw Interrupted("too late");
      return {std::vector<float>(samples.size(), 1), std::vector<uint8_t>(samples.size()), {}, {}};
    }
  };
  Fixture fixture(0);
  auto environment = std::make_unique<Slow>();
  std::latch& all_wait = environment->all_wait;
  fixture.environments["talker"] = std::move(environment);
  const Plan plan = fixture.plan(1, /*samples=*/2);
  const auto job = [&](int64_t key, int64_t step) {
    auto turns = std::make_shared<Turns>(std::vector{fixture.prompts()[0]}, plan);
    const auto requests = turns->requests(plan);
    turns->add_responses(fixture.generation.generate(requests, plan.sampling), fixture.generation.take_columns(),
                         fixture.text);
    return Scorer::Job{key, step, turns};
  };
  std::vector<Scorer::Job> jobs;
  for (int64_t key = 0; key < 6; ++key) jobs.push_back(job(key, /*step=*/1 + key % 2));
  Scorer scorer(fixture.environments);
  for (const Scorer::Job& one : jobs) scorer.push(one);
  all_wait.count_down();
  std::vector<Scorer::Scored> all;
  REQUIRE(toy::eventually([&] {
    for (Scorer::Scored& some : scorer.take()) all.push_back(std::move(some));
    return !scorer.busy();
  }));
  REQUIRE(all.size() <= 3);  // the first alone, or with its step; then what waited, by step
  int64_t samples = 0;
  for (const Scorer::Scored& some : all) {
    for (const Scorer::Job& one : some.jobs) {
      samples += std::ssize(one.turns->newest());
      CHECK(one.step == some.jobs[0].step);
    }
  }
  CHECK(samples == 12);
  scorer.push(job(7, 9));
  CHECK_THROWS_WITH_AS(toy::eventually([&] { return scorer.take(), false; }), "too late", Interrupted);
}

TEST_CASE("a sample ends with the turns that there are, and says so") {
  Fixture fixture(/*replies=*/9);
  const Rollout rollout = fixture.run(/*turns=*/2);
  CHECK(rollout.metrics.at("max_turns_per_sample") == 2);
  CHECK(rollout.metrics.at("max_turns_reached_rate") > 0);
  for (int64_t i = 0; i < rollout.batch.size(); ++i)
    CHECK(rollout.batch.row<float>("token_mask", i).back() == 1);  // no reply behind the last response
  // One turn is what it was without replies.
  const Rollout single = fixture.run(1);
  for (int64_t i = 0; i < single.batch.size(); ++i) CHECK(written(single.batch, i).size() == 1);
}

TEST_CASE("a reply that the context has no room for ends its sample as cut off") {
  Fixture fixture(/*replies=*/9);
  fixture.how.max_total_tokens = 9;
  const Rollout rollout = fixture.run(/*turns=*/9);
  bool any = false;
  for (int64_t i = 0; i < rollout.batch.size(); ++i) {
    CHECK(rollout.batch.length(i) <= 9);
    CHECK(rollout.batch.row<float>("token_mask", i).back() == 1);
    CHECK(rollout.batch.row<uint8_t>("truncated", i)[0] == 1);
    any |= rollout.batch.row<int64_t>("input_ids", i).back() == kEnd;
  }
  CHECK(any);
}

TEST_CASE("a sample that is invalid at one turn is so as a whole") {
  Fixture fixture(/*replies=*/1, /*invalid_at_last=*/true);
  fixture.ends_when_truncated = true;
  const Rollout rollout = fixture.run(4);
  for (int64_t i = 0; i < rollout.batch.size(); ++i) {
    const bool two = written(rollout.batch, i).size() == 2;
    CHECK(rollout.batch.row<uint8_t>("invalid", i)[0] == two);
    CHECK(rollout.batch.row<float>("sample_mask", i)[0] == !two);
  }
}

TEST_CASE("the end of a response is written once, whoever writes it") {
  Fixture fixture(0);
  ModelText& text = fixture.text;
  const auto reply = [&](int32_t last) {
    return text.tokenizer->decode(reply_tokens(text, {"b", "tool"}, last), false);
  };
  text.chat_template = text::ChatTemplate::parse(
      "{% for m in messages %}<question>{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<answer>{% endif "
      "%}",
      "here");
  CHECK(reply(kEnd) == "<question>b<end><answer>");
  CHECK(reply(4) == "<end><question>b<end><answer>");  // a stop string had ended it
  text.chat_template = text::ChatTemplate::parse("{{ messages[-1].content }}", "here");
  CHECK(contains(error_of([&] { reply(kEnd); }),
                 "the chat template leaves out what the assistant said before a message of role 'tool': a rollout of "
                 "several turns needs a template that shows it (policy.tokenizer.chat_template)"));
  text.chat_template.reset();
  CHECK(reply(kEnd) == "b");
}
