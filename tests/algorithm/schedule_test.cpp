// Which schedule a run gets.
#include "core/algorithm/schedule/schedule.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/config/check.hpp"
#include "tests/support/toy/toy.hpp"

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
  run.policy.learning_rate = 0.25;
  return run;
}

// Rate and weight decay of each of 40 steps, of a file with `section` as policy.megatron_cfg.
std::string schedule_of(const std::string& section) {
  const toy::TempDir dir;
  const auto file = dir.write(
      "run.yaml",
      "grpo: {max_num_steps: 40}\npolicy:\n  model_name: " + (toy::source_dir() / "configs/quickstart_model").string() +
          "\n  megatron_cfg: " + section + "\ndata: {train: {dataset_name: arithmetic, size: 4}}\n");
  const auto schedule = make_schedule(config::run_config(config::resolve(file, {})));
  std::string text;
  for (int i = 0; i < 40; ++i, schedule->step())
    text += fmt::format("{} {}\n", schedule->rate(), schedule->weight_decay());
  return text;
}

// A key of the section; beside `optimizer` and `scheduler`, its keys of these.
struct ScheduleCase {
  std::string key, one, other, optimizer, scheduler;
};

std::string schedule_with(const ScheduleCase& row, const std::string& value) {
  const bool of_optimizer = row.key.starts_with("optimizer.");
  const std::string set = row.key.substr(row.key.find('.') + 1) + ": " + value;
  const auto joined = [](const std::string& a, const std::string& b) {
    return a.empty() || b.empty() ? a + b : a + ", " + b;
  };
  return schedule_of("{enabled: true, optimizer: {" + joined(row.optimizer, of_optimizer ? set : "") +
                     "}, scheduler: {" + joined(row.scheduler, of_optimizer ? "" : set) + "}}");
}

}  // namespace

TEST_CASE("each key of megatron_cfg's schedule makes other rates or weight decays") {
  const std::string rates = "lr: 1.0, min_lr: 0.1", decay = "lr_decay_style: linear, lr_decay_iters: 30",
                    wsd = "lr_decay_style: WSD, lr_decay_iters: 30, lr_wsd_decay_iters: 10",
                    weights = "start_weight_decay: 0.1, end_weight_decay: 0.5";
  const std::vector<ScheduleCase> rows = {
      {"optimizer.lr", "1.0", "0.5", "min_lr: 0.1", decay},
      {"optimizer.min_lr", "0.1", "0.2", "lr: 1.0", decay},
      {"scheduler.lr_decay_style", "linear", "cosine", rates, "lr_decay_iters: 30"},
      {"scheduler.lr_decay_iters", "30", "25", rates, "lr_decay_style: linear"},
      {"scheduler.lr_warmup_iters", "5", "10", rates, decay},
      {"scheduler.lr_warmup_init", "0", "0.05", rates, decay},
      {"scheduler.lr_wsd_decay_iters", "10", "5", rates, "lr_decay_style: WSD, lr_decay_iters: 30"},
      {"scheduler.lr_wsd_decay_style", "linear", "exponential", rates, wsd},
      {"scheduler.start_weight_decay", "0.1", "0.2", rates,
       decay + ", weight_decay_incr_style: linear, end_weight_decay: 0.5"},
      {"scheduler.end_weight_decay", "0.5", "0.4", rates,
       decay + ", weight_decay_incr_style: linear, start_weight_decay: 0.1"},
      {"scheduler.weight_decay_incr_style", "linear", "cosine", rates, decay + ", " + weights}};
  for (const ScheduleCase& row : rows) {
    const std::string one = schedule_with(row, row.one);
    CHECK_MESSAGE((one == schedule_with(row, row.one)), row.key);
    CHECK_MESSAGE((one != schedule_with(row, row.other)), row.key);
  }
}

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
  config::ScheduleFact scheduler;
  scheduler.lr = 0.25;
  scheduler.min_lr = 0.05;
  scheduler.lr_warmup_iters = 2;
  scheduler.lr_warmup_init = 0.05;
  scheduler.lr_decay_iters = 6;
  scheduler.lr_decay_style = "linear";
  scheduler.start_weight_decay = scheduler.end_weight_decay = 0.125;
  run.policy.schedule = scheduler;
  const auto schedule = make_schedule(run);
  CHECK(schedule->rate() == doctest::Approx(0.05));
  CHECK(schedule->weight_decay() == 0.125);
  schedule->step();
  schedule->step();
  CHECK(schedule->rate() == doctest::Approx(0.25));
  const auto resumed = make_schedule(run);
  resumed->advance_to(6);
  CHECK(resumed->rate() == doctest::Approx(0.05));
  run = dtensor_run();  // a backend without keys of its own for it
  CHECK(make_schedule(run)->rate() == 0.5);
}
