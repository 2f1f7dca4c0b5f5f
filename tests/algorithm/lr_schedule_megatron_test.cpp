#include "core/algorithm/schedule/lr_schedule_annealed.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "lib/base/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad;
using golden::Json;
using hexad::algorithm::AnnealedSchedule;
using hexad::algorithm::AnnealedScheduleConfig;
using hexad::algorithm::ParamGroupSchedule;

namespace {

template <typename T>
std::optional<T> read_optional(const Json& object, const char* key) {
  if (!object.contains(key) || object.at(key).is_null()) return {};
  return object.at(key).get<T>();
}

AnnealedScheduleConfig config_of(const Json& config) {
  AnnealedScheduleConfig read;
  read.init_lr = golden::number(config.at("init_lr"));
  read.max_lr = golden::number(config.at("max_lr"));
  read.min_lr = golden::number(config.at("min_lr"));
  read.lr_warmup_steps = config.at("lr_warmup_steps");
  read.lr_decay_steps = config.at("lr_decay_steps");
  read.lr_decay_style = config.at("lr_decay_style");
  read.start_wd = golden::number(config.at("start_wd"));
  read.end_wd = golden::number(config.at("end_wd"));
  read.wd_incr_steps = config.at("wd_incr_steps");
  read.wd_incr_style = config.at("wd_incr_style");
  read.wsd_decay_steps = read_optional<int64_t>(config, "wsd_decay_steps");
  read.lr_wsd_decay_style = read_optional<std::string>(config, "lr_wsd_decay_style");
  return read;
}

ParamGroupSchedule group_of(const Json& group) {
  ParamGroupSchedule read;
  read.max_lr = read_optional<double>(group, "max_lr");
  read.min_lr = read_optional<double>(group, "min_lr");
  read.start_wd = read_optional<double>(group, "start_wd");
  read.end_wd = read_optional<double>(group, "end_wd");
  read.wd_mult = group.value("wd_mult", 1.0);
  return read;
}

struct Curves {
  std::vector<std::vector<double>> lr, weight_decay;  // one list a group
};

Curves run(const Json& test_case) {
  const Json& config = test_case.at("config");
  AnnealedSchedule schedule(config_of(config));
  std::vector<ParamGroupSchedule> groups;
  for (const Json& group : test_case.at("inputs").at("param_groups")) groups.push_back(group_of(group));
  Curves curves{std::vector<std::vector<double>>(groups.size()), std::vector<std::vector<double>>(groups.size())};
  for (int64_t step = 0; step <= config.at("steps"); ++step) {
    if (step > 0) schedule.advance(config.at("increment"));
    for (size_t i = 0; i < groups.size(); ++i) {
      curves.lr[i].push_back(schedule.lr(groups[i]));
      curves.weight_decay[i].push_back(schedule.weight_decay(groups[i]));
    }
  }
  return curves;
}

void check_case(const Json& test_case) {
  const Json& want = test_case.at("expected");
  if (want.contains("error")) {
    CHECK_THROWS_AS(run(test_case), Error);
    return;
  }
  const Curves got = run(test_case);
  REQUIRE(got.lr.size() == want.at("lr").size());
  for (size_t i = 0; i < got.lr.size(); ++i) {
    INFO("parameter group " << i);
    golden::check_close(got.lr[i], want.at("lr")[i].get<std::vector<double>>(), 1e-12, 0);
    golden::check_close(got.weight_decay[i], want.at("weight_decay")[i].get<std::vector<double>>(), 1e-12, 0);
  }
}

AnnealedScheduleConfig cosine() {
  return {.max_lr = 1e-3,
          .min_lr = 1e-5,
          .lr_warmup_steps = 5,
          .lr_decay_steps = 30,
          .lr_decay_style = "cosine",
          .start_wd = 0.1,
          .end_wd = 0.1};
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("lr_schedules") { golden::for_each_case("lr_schedules", check_case); }
}

TEST_CASE("one advance equals many") {
  AnnealedSchedule once(cosine()), often(cosine());
  once.advance(17);
  for (int i = 0; i < 17; ++i) often.advance(1);
  CHECK(once.lr() == often.lr());
  CHECK(once.steps() == 17);
}

TEST_CASE("a refused Megatron schedule names the key and what it wants") {
  const auto make = [](auto change) {
    AnnealedScheduleConfig config = cosine();
    change(config);
    AnnealedSchedule{config};
  };
  using Config = AnnealedScheduleConfig;
  CHECK_THROWS_WITH_AS(make([](Config& c) { c.lr_decay_style = "cosin"; }),
                       doctest::Contains("lr_decay_style: unknown style 'cosin', did you mean 'cosine'?"), Error);
  CHECK_THROWS_WITH_AS(make([](Config& c) { c.wd_incr_style = "step"; }),
                       doctest::Contains("wd_incr_style: unknown style 'step'"), Error);
  CHECK_THROWS_WITH_AS(make([](Config& c) { c.min_lr = 1; }),
                       "learning rates: want 0 <= min_lr <= max_lr and init_lr <= max_lr, got min_lr 1, max_lr 0.001, "
                       "init_lr 0",
                       Error);
  CHECK_THROWS_WITH_AS(make([](Config& c) { c.max_lr = std::numeric_limits<double>::quiet_NaN(); }),
                       doctest::Contains("max_lr nan"), Error);
  CHECK_THROWS_WITH_AS(make([](Config& c) { c.lr_warmup_steps = 30; }),
                       "learning rate steps: want 0 <= lr_warmup_steps < lr_decay_steps, got 30 and 30", Error);
  CHECK_THROWS_WITH_AS(make([](Config& c) { c.start_wd = 0.2; }),
                       "weight decay: want 0 <= start_wd <= end_wd, got 0.2 and 0.1", Error);
  CHECK_THROWS_WITH_AS(make([](Config& c) { c.end_wd = 0.2; }),
                       doctest::Contains("wd_incr_style constant: start_wd 0.1 and end_wd 0.2 differ"), Error);
  CHECK_THROWS_WITH_AS(make([](Config& c) { c.wd_incr_style = "linear"; }),
                       "wd_incr_steps: is 0, want at least 1 with wd_incr_style linear", Error);
  CHECK_THROWS_WITH_AS(make([](Config& c) { c.lr_decay_style = "WSD"; }),
                       "lr_decay_style WSD: wants wsd_decay_steps of 0 or more and lr_wsd_decay_style", Error);
  CHECK_THROWS_WITH_AS(make([](Config& c) {
                         c.lr_decay_style = "WSD";
                         c.wsd_decay_steps = 5;
                         c.lr_wsd_decay_style = "sqrt";
                       }),
                       doctest::Contains("lr_wsd_decay_style: unknown style 'sqrt'"), Error);
  CHECK_THROWS_WITH_AS(AnnealedSchedule(cosine()).advance(-3), "learning-rate schedule: cannot go back by 3 steps",
                       Error);
  CHECK_THROWS_WITH_AS(AnnealedSchedule(cosine()).weight_decay({.end_wd = 0.5}),
                       doctest::Contains("start_wd 0.1 and end_wd 0.5 differ"), Error);
}
