// Which schedule a run gets.
#include "core/algorithm/schedule.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace hexad;
using namespace hexad::algorithm;

namespace {

config::RunConfig dtensor_run() {
  config::RunConfig run;
  run.policy.backend = "dtensor";
  run.policy.optimizer.kwargs = {{"lr", 0.5}};
  run.policy.scheduler = nullptr;
  return run;
}

config::RunConfig megatron_run() {
  config::RunConfig run = dtensor_run();
  run.policy.backend = "megatron";
  run.policy.megatron_cfg.optimizer.lr = 0.25;
  run.policy.megatron_cfg.optimizer.min_lr = 0.05;
  return run;
}

}  // namespace

TEST_CASE("PyTorch's scheduler over the optimizer's rate; weight decay is the optimizer's own") {
  config::RunConfig run = dtensor_run();
  CHECK(make_schedule(run)->rate() == 0.5);
  CHECK(std::isnan(make_schedule(run)->weight_decay()));
  run.policy.optimizer.kwargs = nlohmann::ordered_json::object();
  CHECK(make_schedule(run)->rate() == 1e-3);
  run = megatron_run();  // without a section of its own
  CHECK(make_schedule(run)->rate() == 0.25);
}

TEST_CASE("megatron_cfg.scheduler gives rate and weight decay where megatron trains") {
  config::RunConfig run = megatron_run();
  config::MegatronSchedulerConfig scheduler;
  scheduler.lr_warmup_iters = 2;
  scheduler.lr_warmup_init = 0.05;
  scheduler.lr_decay_iters = 6;
  scheduler.lr_decay_style = "linear";
  scheduler.start_weight_decay = scheduler.end_weight_decay = 0.125;
  run.policy.megatron_cfg.scheduler = scheduler;
  const auto schedule = make_schedule(run);
  CHECK(schedule->rate() == doctest::Approx(0.05));
  CHECK(schedule->weight_decay() == 0.125);
  schedule->step();
  schedule->step();
  CHECK(schedule->rate() == doctest::Approx(0.25));
  const auto resumed = make_schedule(run);
  resumed->advance_to(6);
  CHECK(resumed->rate() == doctest::Approx(0.05));
  run.policy.backend = "dtensor";
  CHECK(make_schedule(run)->rate() == 0.5);
}
