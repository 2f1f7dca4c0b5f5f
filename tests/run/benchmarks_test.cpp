// The benchmarks of whole runs, on a CPU with a tiny model: what they check holds, and they say what they measured.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/run/first_party.hpp"

using Json = nlohmann::json;

TEST_CASE("grpo_step measures whole steps of the lengths that it imposes") {
  const toy::TempDir dir;
  const std::string out = (dir / "result.json").string(), log = (dir / "log").string();
  const std::string command = fmt::format(
      "python3 -B {}/benchmarks/grpo_step.py --build {} --out {} --model tiny --device cpu --gpus 2 --prompts 2 "
      "--samples 4 "
      "--steps 2 --longest 64 --mean-response 12 --prompt-tokens 5,9 --micro-batch 256 --kv-gb 0.01 --precision "
      "float32 "
      "--timeout 240 > {} 2>&1",
      first_party::source(), std::getenv("HEXAD_BUILD_DIR"), out, log);
  const int code = std::system(command.c_str());
  INFO(toy::read_text(log));
  REQUIRE(code == 0);
  const Json result = Json::parse(toy::read_text(out));
  CHECK(result.at("checks").at("ok").get<bool>());
  CHECK(result.at("steps").size() == 2);
  for (const Json& step : result.at("steps")) {
    CHECK(step.at("token_mult_prob_error").get<double>() < 1.001);
    CHECK(step.at("timing").contains("policy_training"));
    const double seconds = step.at("total_step_time");
    CHECK(step.at("gpu_seconds_per_sample").get<double>() == doctest::Approx(seconds * 2 / 8));
  }
}
