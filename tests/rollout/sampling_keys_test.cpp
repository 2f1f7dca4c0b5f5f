// Keys of policy.generation as requests carry them.
#include "core/config/check.hpp"
#include "core/rollout/generation.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;

TEST_CASE("each key of sampling reaches the requests") {
  const toy::TempDir dir;
  const auto file = dir.write("toy.yaml", toy::config_text(dir.path()));
  const auto requests_with = [&](const std::string& key, const std::string& value) {
    const std::string override = "++policy.generation." + key + "=" + value;
    const config::RunConfig run = config::run_config(config::resolve(file, {override}));
    cluster::protocol::Submit submit;
    submit.sampling = rollout::sampling_from(run.policy, {2});
    return to_message(submit).header.dump();
  };
  for (const auto& [key, one, other] : std::vector<std::array<std::string, 3>>{{"temperature", "1", "0.5"},
                                                                               {"top_p", "1", "0.5"},
                                                                               {"top_k", "null", "3"},
                                                                               {"min_p", "null", "0.5"},
                                                                               {"ignore_eos", "false", "true"},
                                                                               {"stop_token_ids", "null", "[4]"},
                                                                               {"stop_strings", "null", "[a, b]"}})
    CHECK_MESSAGE((requests_with(key, one) != requests_with(key, other)), key);
}
