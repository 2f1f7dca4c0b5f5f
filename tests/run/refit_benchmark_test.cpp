// benchmarks/refit on the CPU: two ranks, one backend sharded over them, a generator beside each.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/run/first_party.hpp"

TEST_CASE("the refit benchmark measures updates and finds every weight in its place") {
  constexpr int64_t kWeights = 2 * 9 + 3;  // of its tiny model
  for (const std::string backend : {"dtensor", "megatron"}) {
    for (const int sleep_level : {0, 2}) {
      CAPTURE(backend);
      CAPTURE(sleep_level);
      const toy::TempDir dir;
      const std::string out = (dir / "result.json").string(), log = (dir / "log").string();
      const std::string command = fmt::format(
          "python3 -B {}/benchmarks/refit.py --build {} --out {} --model tiny --gpus 2 --repeats 3 --backend {} "
          "--sleep-level {} --timeout 240 > {} 2>&1",
          first_party::source(), std::getenv("HEXAD_BUILD_DIR"), out, backend, sleep_level, log);
      const int code = std::system(command.c_str());
      INFO(toy::read_text(log));
      REQUIRE(code == 0);
      const auto result = nlohmann::json::parse(toy::read_text(out));
      CHECK(result.at("limit_s") > 0);
      const auto& run = result.at("run");
      CHECK(run.at("ok") == true);
      CHECK(run.at("ranks") == 2);
      REQUIRE(run.at("refit_s").size() == 3);
      for (size_t i = 0; i < 3; ++i) CHECK(run.at("refit_s")[i] >= run.at("worker_s")[i]);
      CHECK(run.at("weights_compared") == 2 * kWeights);
      CHECK(run.at("weights_changed") > kWeights / 2);  // of some, all changes round to none
      CHECK(run.at("weights_differing").empty());
      CHECK(run.at("weight_bytes") == 2 * run.at("parameters").get<int64_t>());
      CHECK(run.at("token_mult_prob_error") < 1.02);
    }
  }
}
