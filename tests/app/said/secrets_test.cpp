// Secrets of a run: in nothing that it writes or says.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/support/toy/train.hpp"

using namespace toy::names;

namespace {

constexpr const char* kVariable = "HEXAD_TEST_APP_TOKEN";
constexpr const char* kSecrets[] = {"of-the-environment-77", "of-an-override-88", "of-a-url-99"};

// A run that is given one secret in each of the ways.
Arguments run_with_secrets(const TempDir& dir, int steps) {
  return toy::train(dir, {"+env.nemo_gym={token: of-an-override-88, url: 'http://user:of-a-url-99@h/', "
                          "header: 'Bearer ${oc.env:HEXAD_TEST_APP_TOKEN}'}",
                          fmt::format("grpo.max_num_steps={}", steps)});
}

bool has_secret(const std::string& text) {
  return std::ranges::any_of(kSecrets, [&](const char* secret) { return contains(text, secret); });
}

unsigned rights(const toy::fs::path& file) { return static_cast<unsigned>(toy::fs::status(file).permissions()) & 0777; }

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a run writes and says no secret; what comes from the environment stands there by name") {
  const TempDir dir;
  ::setenv(kVariable, kSecrets[0], 1);
  const Ended first = toy::run(run_with_secrets(dir, 2));
  REQUIRE_MESSAGE(first.code == 0, first.err);
  CHECK_FALSE(has_secret(first.out + first.err));
  for (const char* folder : {"logs", "checkpoints"}) {
    for (const auto& entry : toy::fs::recursive_directory_iterator(dir / folder))
      if (entry.is_regular_file()) CHECK_MESSAGE(!has_secret(toy::read_text(entry.path())), entry.path().string());
  }
  const toy::fs::path configs[] = {dir / "logs/exp_001/config.yaml", dir / "checkpoints/step_2/config.yaml"};
  for (const toy::fs::path& config : configs) {
    const std::string text = toy::read_text(config);
    CHECK_MESSAGE(contains(text, "header: \"Bearer ${oc.env:HEXAD_TEST_APP_TOKEN}\"\n"), text);
    CHECK_MESSAGE(contains(text, "token: \"***\"\n"), text);
    CHECK_MESSAGE(contains(text, "url: \"http://user:***@h/\"\n"), text);
    CHECK(rights(config) == 0600);
  }
  for (const char* file : {"logs/exp_001/report.html", "logs/exp_001/worker-0.log"}) CHECK(rights(dir / file) == 0600);

  // Another value is no change of the configuration.
  ::setenv(kVariable, "another-value-of-it", 1);
  const Ended second = toy::run(run_with_secrets(dir, 3));
  REQUIRE_MESSAGE(second.code == 0, second.err);
  CHECK_MESSAGE(contains(second.err, "resumed from"), second.err);
  CHECK_FALSE(contains(second.err, "changed since: env"));

  ::unsetenv(kVariable);
  const Ended unset = toy::run(run_with_secrets(dir, 4));
  CHECK(unset.code == 2);
  CHECK_MESSAGE(contains(unset.err, "environment variable HEXAD_TEST_APP_TOKEN is not set"), unset.err);
  CHECK_FALSE(has_secret(unset.err));
  const Ended written = toy::run({"train", configs[1].string(), "env.nemo_gym.header=x", "env.nemo_gym.url=y"});
  CHECK(written.code == 2);
  CHECK_MESSAGE(contains(written.err, "env.nemo_gym.token: here was a secret, which was left out"), written.err);
}

TEST_CASE("commands that show or refuse a configuration show no secret of it") {
  const TempDir dir;
  ::setenv(kVariable, kSecrets[0], 1);
  const std::string config = dir.write("toy.yaml", toy::config_text(dir.path())).string();
  const std::string secrets =
      "+env.nemo_gym={token: of-an-override-88, header: '${oc.env:HEXAD_TEST_APP_TOKEN}', url: "
      "'http://user:of-a-url-99@h/'}";
  const Arguments commands[] = {{"config", "show", config, secrets},
                                {"config", "show", config, "--json", secrets},
                                {"config", "show", config, "--origin", secrets},
                                {"config", "check", config, secrets, "grpo.token=of-an-override-88"},
                                {"config", "check", config, "grpo.seed={password: of-an-override-88}"},
                                {"config", "check", config, "logger.log_dir={a: 'http://u:of-a-url-99@h'}"},
                                {"train", config, "--env.x.token=of-an-override-88"},
                                {"train", config, "+env.x.token=(of-an-override-88"}};
  for (const Arguments& command : commands) {
    const Ended ended = toy::run(command);
    CAPTURE(command.back());
    const std::string said = ended.out + ended.err;
    CHECK_MESSAGE(!has_secret(said), said);
    CHECK_FALSE(said.empty());
  }
  ::unsetenv(kVariable);
}

TEST_SUITE_END();
