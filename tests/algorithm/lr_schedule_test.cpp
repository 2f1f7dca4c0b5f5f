#include "core/algorithm/schedule/lr_schedule.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad;
using golden::Json;
using hexad::algorithm::LrSchedule;

namespace {

std::vector<double> rates(const Json& test_case) {
  const Json& policy = test_case.at("config").at("policy");
  LrSchedule schedule(policy.at("scheduler"), policy.at("optimizer").at("kwargs").at("lr"));
  std::vector<double> result = {schedule.rate()};
  for (int64_t i = 0; i < test_case.at("config").at("steps"); ++i) {
    schedule.step();
    result.push_back(schedule.rate());
  }
  return result;
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("optimizer: scheduler") {
    golden::for_each_case(
        "optimizer",
        [](const Json& test_case) {
          if (test_case.at("expected").contains("error")) {
            CHECK_THROWS_AS(rates(test_case), Error);
            return;
          }
          golden::check_close(rates(test_case), test_case.at("expected").at("lr").get<std::vector<double>>(), 1e-12, 0);
        },
        [](const Json& test_case) { return golden::prefix(test_case) == "scheduler"; });
  }
}

TEST_CASE("a schedule that is advanced equals one that was stepped") {
  const Json config = Json::parse(R"([{"name": "LinearLR", "kwargs": {"start_factor": 0.1, "total_iters": 3}},
    {"name": "CosineAnnealingLR", "kwargs": {"T_max": 5}}, {"milestones": [3]}])");
  LrSchedule stepped(config, 1e-3), advanced(config, 1e-3);
  for (int i = 0; i < 6; ++i) stepped.step();
  advanced.advance_to(6);
  CHECK(stepped.rate() == advanced.rate());
  CHECK(advanced.steps() == 6);
}

TEST_CASE("schedule errors name the key") {
  const auto make = [](const char* text) { LrSchedule(Json::parse(text), 1.0); };
  CHECK_THROWS_WITH_AS(make(R"({"name": "LinerLR"})"), doctest::Contains("did you mean 'LinearLR'?"), Error);
  CHECK_THROWS_WITH_AS(make(R"({"name": "StepLR", "kwargs": {}})"), doctest::Contains("kwargs.step_size: is missing"),
                       Error);
  CHECK_THROWS_WITH_AS(make(R"({"name": "StepLR", "kwargs": {"step_size": 2, "gama": 1}})"),
                       doctest::Contains("kwargs.gama: unknown argument"), Error);
  CHECK_THROWS_WITH_AS(make(R"([{"name": "ConstantLR"}, {"name": "ConstantLR"}])"),
                       doctest::Contains("2 schedulers want 1 ascending milestones"), Error);
  CHECK_THROWS_WITH_AS(make(R"([{"milestone": [1]}])"), doctest::Contains("policy.scheduler[0]: want"), Error);
  CHECK_THROWS_WITH_AS(make(R"("cosine")"), doctest::Contains("want {name, kwargs}"), Error);
}
