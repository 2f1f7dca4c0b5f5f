// Several rewards in one environment.
#include "core/environment/weighted_sum.hpp"

#include "tests/environment/scripted_program.hpp"

using namespace scripted;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

using Floats = std::vector<float>;

Json python(const Script& script) { return {"python3", script.file.string()}; }

}  // namespace

TEST_CASE("parts are weighed, added, and reported unweighted") {
  Script script;
  const Json rewards = Json::parse(R"([
      {"name": "exact_answer", "weight": 2},
      {"name": "format", "weight": 0.5, "regex": "a.*"},
      {"name": "short", "type": "length", "weight": -1, "full_at": 0, "none_at": 10},
      {"name": "last_number", "weight": 0}])");
  static plugin::Registry none({}, nullptr);
  const auto environment = make("mine", Json{{"rewards", rewards}}, {none});
  Responses responses({"a", "abc", "3"});
  for (Sample& sample : responses.samples) sample.ground_truth = "a", sample.response_tokens = 5;
  responses.samples[2].ground_truth = "3";
  const Scores scores = environment->score(responses.samples, 1);
  CHECK(scores.components.at("exact_answer") == Floats{1, 0, 1});
  CHECK(scores.components.at("format") == Floats{1, 1, 0});
  CHECK(scores.components.at("short") == Floats{0.5f, 0.5f, 0.5f});
  CHECK(scores.components.at("last_number") == Floats{0, 0, 1});
  CHECK(scores.components.size() == 4);
  CHECK(scores.rewards == Floats{2 + 0.5f - 0.5f, 0.5f - 0.5f, 2 - 0.5f});
  CHECK(scores.answers == std::vector<std::string>{"a", "abc", "3"});  // of the first part that tells any
}

TEST_CASE("a part that cannot score a sample makes it invalid, with its reason; its components are metrics") {
  Script script;
  const auto environment = script.make(Json::object());  // starts nothing of what follows
  const Json part = {{"name", "code"}, {"command", python(script)}, {"retries", 0}, {"components", {"tests"}}};
  static plugin::Registry none({}, nullptr);
  const auto sum = make("mine", Json{{"rewards", {part, {{"name", "token_task"}}}}}, {none});
  const Scores scores = score(*sum, {R"(parts:{"tests": 0.5})", "die", R"(parts:{"tests": 1})"});
  CHECK(scores.rewards == Floats{1, 0, 1});
  CHECK(scores.invalid == std::vector<uint8_t>{0, 1, 0});
  CHECK(contains(scores.why_invalid, "part 'code': ended with exit status 3"));
  CHECK(scores.metrics.at("reward/code/tests") == 0.75);
  CHECK(scores.metrics.at("code/num_reward_failures") == 1);
  CHECK(scores.metrics.at("num_reward_failures") == 1);
  CHECK(scores.components.size() == 2);
}

TEST_CASE("failures of all parts are counted under the name that one environment has for them") {
  Script script;
  static plugin::Registry none({}, nullptr);
  const auto part = [&](const char* name, double weight) {
    return Json{{"name", name}, {"weight", weight}, {"command", python(script)}, {"num_workers", 1}, {"retries", 0}};
  };
  const Json inner = {{"name", "inner"}, {"rewards", {part("three", 1)}}};
  const auto sum = make("mine", Json{{"rewards", {part("one", 1), part("two", 0), inner}}}, {none});
  score(*sum, {"good"});
  const Scores scores = score(*sum, {"good", "die", "die"});
  CHECK(scores.metrics.at("two/num_reward_failures") == 2);
  CHECK(scores.metrics.at("inner/three/num_reward_failures") == 2);
  CHECK(scores.metrics.at("num_reward_failures") == 6);
}

TEST_CASE("a part of weight 0 makes no sample invalid, and its mean is that of what it could score") {
  Script script;
  static plugin::Registry none({}, nullptr);
  const auto sum_with = [&](double weight) {
    const Json part = {
        {"name", "code"}, {"weight", weight}, {"command", python(script)}, {"retries", 0}, {"components", {"tests"}}};
    return make("mine", Json{{"rewards", {part, {{"name", "length"}, {"full_at", 0}, {"none_at", 10}}}}}, {none});
  };
  const std::string well = R"(parts:{"tests": 1})", ill = "invalid:no tests";
  const auto score_groups = [&](const Environment& sum, const std::vector<std::string>& texts) {
    Responses responses(texts);
    for (size_t i = 0; i < texts.size(); ++i)
      responses.samples[i].group = i / 2, responses.samples[i].response_tokens = 5;
    return sum.score(responses.samples, 1);
  };
  const auto reported = sum_with(0), weighed = sum_with(1);
  const Scores scores =
      score_groups(*reported, {well, ill, ill, ill, "say:{\"reward\": 0, \"components\": {\"tests\": 0}}", "die"});
  CHECK(scores.rewards == Floats(6, 0.5f));
  CHECK(scores.invalid == std::vector<uint8_t>(6, 0));
  CHECK(scores.why_invalid == "");
  CHECK(scores.components.at("code") == Floats{1, 1, 0.5f, 0.5f, 0, 0});  // of the group, or of all
  CHECK(scores.metrics.at("reward/code/tests") == 0.5);
  CHECK(scores.metrics.at("num_reward_failures") == 1);

  const Scores nothing = score_groups(*reported, {ill, ill});  // has no mean
  CHECK(nothing.invalid == std::vector<uint8_t>(2, 0));
  CHECK(nothing.rewards == Floats(2, 0.5f));
  CHECK_FALSE(nothing.components.contains("code"));
  CHECK_FALSE(nothing.metrics.contains("reward/code/tests"));

  const Scores strict = score_groups(*weighed, {well, ill});
  CHECK(strict.invalid == std::vector<uint8_t>{0, 1});
  CHECK(contains(strict.why_invalid, "part 'code': the program says that it cannot score it: no tests"));
}

TEST_CASE("a part of weight 0 that holds the conversation makes invalid what it fails") {
  Script script;
  static plugin::Registry none({}, nullptr);
  const Json part = {{"name", "talk"}, {"weight", 0}, {"command", python(script)}, {"retries", 0}};
  const auto sum = make("mine", Json{{"rewards", {part, {{"name", "token_task"}}}}}, {none});
  CHECK(score(*sum, {R"(say:{"reply": "go on"})", "invalid:x"}).invalid == std::vector<uint8_t>{0, 1});
}

TEST_CASE("of a weighted sum one part may reply, and each keeps its own state") {
  Script script;
  static plugin::Registry none({}, nullptr);
  const auto part = [&](const char* name) {
    return Json{{"name", name}, {"command", {"python3", script.file.string()}}, {"num_workers", 1}};
  };
  const auto sum = make("mine", Json{{"rewards", {part("one"), part("two"), {{"name", "token_task"}}}}}, {none});
  Responses responses({"state", "good"});
  const Scores scores = sum->score(responses.samples, 1);
  CHECK(scores.rewards[0] == 2);
  CHECK(scores.states[0] == Json{{"one", 1}, {"two", 1}});
  CHECK(scores.states[1].is_null());
  responses.samples[0].turn = 1;
  responses.samples[0].state = &scores.states[0];
  CHECK(sum->score(responses.samples, 1).states[0] == Json{{"one", 2}, {"two", 2}});
  Responses both({R"(say:{"reply": "a"})"});
  CHECK(error_of([&] { sum->score(both.samples, 1); }) ==
        "rewards: the parts 'one' and 'two' both reply to one response: of a weighted sum one part alone may hold the "
        "conversation");
  const auto single = make("mine", Json{{"rewards", {part("one"), {{"name", "token_task"}}}}}, {none});
  const Scores replied = single->score(both.samples, 1);
  REQUIRE(replied.replies[0]);
  CHECK(replied.replies[0]->content == "a");
}

TEST_CASE("the cosine reward of a length asks another part whether a response is right") {
  static plugin::Registry none({}, nullptr);
  const Json rewards = Json::parse(R"([{"name": "exact_answer", "weight": 0},
                                       {"name": "length", "schedule": "cosine", "of": "exact_answer",
                                         "max_tokens": 8}])");
  const auto environment = make("mine", Json{{"rewards", rewards}}, {none});
  Responses responses({"yes", "no", "yes"});
  for (Sample& sample : responses.samples) sample.ground_truth = "yes";
  responses.samples[2].response_tokens = 8;
  CHECK(environment->score(responses.samples, 1).rewards == Floats{1, -1, 0.5f});
}

TEST_CASE("wrong parts are refused with their place") {
  static plugin::Registry none({}, nullptr);
  const auto refuses = [](const char* rewards) {
    return error_of([&] { make("mine", Json{{"rewards", Json::parse(rewards)}}, {none}); });
  };
  CHECK(refuses("[]") == "env.mine.rewards: want a list of parts, as [{name: math, weight: 1.0}], got []");
  CHECK(refuses("[{\"weight\": 1}]") ==
        "env.mine.rewards[0]: want a part with a name, as {name: math, weight: 1.0}, got {\"weight\":1}");
  CHECK(contains(refuses(R"([{"name": "token_task"}, {"name": "token_task"}])"),
                 "env.mine.rewards[1]: two parts have the name 'token_task'. Name the second otherwise, with `type: "));
  CHECK(contains(refuses(R"([{"name": "tokentask"}])"),
                 "env.mine.rewards[0].name: unknown environment 'tokentask', did you mean 'token_task'?"));
  CHECK(contains(refuses(R"([{"name": "token_task", "weight": "a"}])"),
                 "env.mine.rewards[0].weight: want a number, got \"a\""));
  CHECK(contains(refuses(R"([{"name": "length", "schedule": "cosine", "of": "other"}])"),
                 "env.mine.rewards[0].of: want the name of an earlier part, which tells whether a response is right, "
                 "got 'other'"));
  CHECK(contains(refuses(R"([{"name": "token_task", "type": 3}])"),
                 "env.mine.rewards[0].type: want the name of an environment, got 3"));
  CHECK(contains(error_of([] {
                   make("mine", Json{{"rewards", Json::array()}, {"reward", 1}}, {none});
                 }),
                 "env.mine.reward: unknown key, did you mean 'rewards'?"));
  CHECK(refuses(R"([{"wieght": 2}])") == "env.mine.rewards[0].wieght: unknown key, did you mean 'weight'?");
  CHECK(refuses(R"([{"name": "token_task", "wieght": 2}])") ==
        "env.mine.rewards[0].wieght: unknown key, did you mean 'weight'?");
  CHECK(refuses(R"([{"nmae": "token_task"}])") == "env.mine.rewards[0].nmae: unknown key, did you mean 'name'?");
  CHECK(refuses(R"([{"name": "exact_answer", "ignore_caes": true}])") ==
        "env.mine.rewards[0].ignore_caes: unknown key, did you mean 'ignore_case'?");
  CHECK(refuses(R"([{"name": "a", "type": "length", "full_att": 1}])") ==
        "env.mine.rewards[0].full_att: unknown key, did you mean 'full_at'?");
  CHECK(refuses(R"([{"name": "a", "type": "lenght"}])")
            .starts_with("env.mine.rewards[0].type: unknown environment 'lenght', did you mean 'length'?"));
  CHECK(refuses(R"([{"name": "token_task"}, {"name": "l", "type": "length", "schedule": "cosine", "off": "a"}])") ==
        "env.mine.rewards[1].off: unknown key, did you mean 'of'?");
  CHECK(refuses(R"([{"name": "p", "command": ["no-such-program"]}])")
            .starts_with("env.mine.rewards[0].command: no program 'no-such-program'"));
}
