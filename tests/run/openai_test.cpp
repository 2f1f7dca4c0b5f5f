// Whole commands over a server that keeps its model: an evaluation, and a run that trains on its samples.
#include <doctest/doctest.h>

#include "tests/run/faults/attached_servers.hpp"
#include "tests/run/run_steps.hpp"

using first_party::both;
using first_party::source;
using toy::TempDir;

namespace {

// The stand-in that lies beside the plugin, with the quickstart's model.
class StandIn {
 public:
  // Overrides: it generates.
  std::vector<std::string> overrides() const {
    return {"policy.generation.backend=openai", "++cluster.device=cpu",
            "++policy.generation.openai_cfg={server_urls: [\"" + servers_.urls()[0] + "/v1\"], model: stand-in}"};
  }

 private:
  faults::AttachedServers servers_{1,
                                   toy::hexad().parent_path().parent_path() / "lib/hexad/plugins/openai_stand_in",
                                   "--model",
                                   source() + "/configs/quickstart_model",
                                   {{"VLLM_API_KEY", ""}}};
};

std::string config() { return source() + "/configs/quickstart.yaml"; }

}  // namespace

TEST_SUITE_BEGIN("timing");  // servers that must answer in time

TEST_CASE("hexad eval measures the model of a server, and draws the same again") {
  const StandIn server;
  const TempDir dir;
  std::vector<std::string> scores;
  for (const char* out : {"a", "b"}) {
    const toy::Ended run = toy::run(both({"eval", config(), "~grpo", "++eval.k_value=1",
                                          "++eval.num_tests_per_prompt=2", "++eval.save_path=" + (dir / out).string()},
                                         server.overrides()),
                                    "", 300);
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    CHECK(run.out.find("pass@1 over ") != std::string::npos);
    scores.push_back(toy::read_text(dir / out / "samples.jsonl"));
    CHECK(scores.back().find("\"response\"") != std::string::npos);
  }
  CHECK(scores[0] == scores[1]);
}

TEST_CASE("a run trains on the samples of a server that keeps its model, with the correction alone") {
  const StandIn server;
  const TempDir dir;
  const std::vector<std::string> steps = both(server.overrides(), {"grpo.max_num_steps=2"});
  const toy::Ended refused =
      toy::run(first_party::train(config(), dir, both(first_party::training_alone(), steps)), "", 300);
  CHECK(refused.code == 2);
  CHECK_MESSAGE(refused.err.find("whose servers take no weights") != std::string::npos, refused.err);
  const toy::Ended run = toy::run(first_party::train(config(), dir,
                                                     both(both(first_party::training_alone(), steps),
                                                          {"++policy.generation.openai_cfg.logprobs=true",
                                                           "++loss_fn.use_importance_sampling_correction=true"})),
                                  "", 600);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK((run.out + run.err).find("no refit: servers of openai keep the model that they have") != std::string::npos);
  const std::vector<nlohmann::json> made = first_party::steps_of(dir);
  REQUIRE(made.size() == 2);
  for (const nlohmann::json& step : made) CHECK(step.at("train/sampling_importance_ratio").get<double>() > 0);
}

TEST_SUITE_END();
