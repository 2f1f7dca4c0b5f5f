// Rewards by a server: its keys, wrong and as docs/rewards.md has them.
#include <fstream>

#include "core/config/check.hpp"
#include "core/config/typed/run_config.hpp"
#include "tests/plugin/plugin_folder.hpp"
#include "tests/plugins/environment/http_reward.hpp"

using namespace http_reward_test;
using plugin_test::contains;
using plugin_test::error_of;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("http_reward: the page's configurations work") {
  ::setenv("JUDGE_KEY", "key", 1);
  ::setenv("JUDGE_PROJECT", "p", 1);
  const std::filesystem::path source = std::getenv("HEXAD_SOURCE_DIR");
  std::ifstream page(source / "docs/rewards.md");
  std::vector<std::string> found;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      inside = line == "```yaml";
      if (inside) found.emplace_back();
    } else if (inside) {
      found.back() += line + "\n";
    }
  }
  const Server server([](const Request& request, int) -> Reply {
    const Json body = Json::parse(request.body);
    if (body.is_object()) return completion("Score: 5");
    Json answers = Json::array();
    for (const Json& each : body) answers.push_back({{"id", each.at("id")}, {"reward", 0.5}});
    return {200, answers.dump()};
  });
  int tried = 0;
  for (const std::string& block : found) {
    if (!contains(block, "http_reward")) continue;
    INFO(block);
    const auto file = std::filesystem::temp_directory_path() / fmt::format("hexad-rewards-{}.yaml", ::getpid());
    std::ofstream(file) << fmt::format("defaults: {}/configs/quickstart.yaml\n", source.string()) << block;
    const config::RunConfig run = config::run_config(config::resolve(file));
    std::filesystem::remove(file);
    Json plugin_config = run.env.at(run.data.train.at(0).env_name).at("plugin_config");
    plugin_config["url"] = server.url();
    CHECK(score(*http_reward(plugin_config), std::vector<std::string>(20, "x")).rewards == Floats(20, 0.5f));
    ++tried;
  }
  CHECK(tried == 2);
}

TEST_CASE("http_reward: wrong keys are refused") {
  ::unsetenv("HEXAD_TEST_UNSET");
  ::setenv("HEXAD_TEST_LINES", "a\nb", 1);
  const auto refuses = [](const Json& config) { return error_of([&] { http_reward(config); }); };
  const auto with = [](const Json& more) { return quick("http://127.0.0.1:9/", more); };
  SAYS(refuses(Json::object()), "url: want http://HOST:PORT/PATH or https://..., got ''");
  SAYS(refuses({{"url", "ftp://x"}}), "got 'ftp://x'");
  SAYS(refuses(with({{"timeout_s", 0}})), "timeout_s: want more than 0, got 0");
  SAYS(refuses(with({{"retries", -1}})), "retries: want 0 to 1000, got -1");
  SAYS(refuses(with({{"retries", INT64_MAX}})), "retries: want 0 to 1000, got 9223372036854775807");
  SAYS(refuses(with({{"max_concurrency", 0}})), "max_concurrency: want 1 to 4096, got 0");
  SAYS(refuses(with({{"deadline_s", 0}})), "deadline_s: want more than 0, got 0");
  SAYS(refuses(with({{"api_key_env", "HEXAD_TEST_UNSET"}})),
       "api_key_env: the variable HEXAD_TEST_UNSET of the environment is not set. Export it before hexad train");
  SAYS(refuses(with({{"api_key_env", "HEXAD_TEST_LINES"}})), "the variable HEXAD_TEST_LINES holds a line end");
  SAYS(refuses(with({{"headers", {{"A", 1}}}})), "headers: want a mapping of texts, got {\"A\":1}");
  SAYS(refuses(with({{"retrys", 1}})), "plugin_config.retrys is not used by 'http_reward'. Did you mean retries?");
  SAYS(refuses({{"uri", "http://x"}}), "url: want http://HOST:PORT/PATH or https://..., got ''");
  SAYS(refuses(with({{"frobnicate", 1}})), "plugin_config.frobnicate is not used by 'http_reward'.");
  SAYS(refuses(with(judge({{"modle", "m"}}))), "judge.modle is not used by 'http_reward'. Did you mean judge.model?");
  static plugin::Registry registry({}, nullptr);
  const auto section_refuses = [&](const Json& section) {
    return error_of([&] { environment::make("mine", section, {registry}); });
  };
  SAYS(section_refuses({{"plugin", "http_reward"}, {"uri", "http://x"}}), "env.mine: ");
  SAYS(refuses(with(judge({{"model", nullptr}}))), "judge: want both model and prompt, got prompt alone");
  SAYS(refuses(with(judge({{"prompt", nullptr}}))), "judge: want both model and prompt, got model alone");
  SAYS(refuses(with(judge({{"prompt", "{respone}"}}))),
       "no such placeholder: {respone}; there are {prompt}, {response}");
  SAYS(refuses(with(judge({{"prompt", "good?"}}))), "judge.prompt: want {response} in it");
  SAYS(refuses(with(judge({{"score_regex", "("}}))),
       "judge.score_regex: '(' is no regular expression (PCRE2): missing");
  SAYS(refuses(with(judge({{"score_json", "/a"}}))),
       "judge: want one of score_regex ('Score: *([0-9.]+)') and score_json (/score), got both");
  SAYS(refuses(with(judge({{"score_regex", nullptr}}))), "got neither");
  SAYS(refuses(with(judge({{"score_regex", nullptr}, {"score_json", "a"}}))),
       "judge.score_json: want a JSON pointer, as /score, got 'a'");
  SAYS(refuses(with(judge({{"score_max", 0}}))), "judge.score_max: want more than score_min, 0, got 0");
  SAYS(refuses(with(judge({{"body", "x"}}))), "judge.body: want a mapping, got \"x\"");
  Json batched = judge();
  batched["batch_size"] = 2;
  SAYS(refuses(with(batched)), "batch_size: want 1 for a judge, which sees one response at a time, got 2");
}

TEST_SUITE_END();
