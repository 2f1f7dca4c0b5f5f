#include "core/algorithm/schedule/schedule.hpp"

#include <cmath>

#include "core/algorithm/schedule/lr_schedule.hpp"
#include "core/algorithm/schedule/lr_schedule_annealed.hpp"

namespace hexad::algorithm {
namespace {

constexpr double kTorchRate = 1e-3;  // torch's default for Adam and AdamW

class TorchSchedule : public Schedule {
 public:
  TorchSchedule(const nlohmann::ordered_json& scheduler, double base) : lr_(scheduler, base) {}
  double rate() const override { return lr_.rate(); }
  double weight_decay() const override { return std::nan(""); }
  void step() override { lr_.step(); }
  void advance_to(int64_t count) override { lr_.advance_to(count); }

 private:
  LrSchedule lr_;
};

class AnnealedRate : public Schedule {
 public:
  explicit AnnealedRate(const AnnealedScheduleConfig& config) : schedule_(config) {}
  double rate() const override { return schedule_.lr(); }
  double weight_decay() const override { return schedule_.weight_decay(); }
  void step() override { schedule_.advance(1); }
  void advance_to(int64_t count) override { schedule_.advance(count - schedule_.steps()); }

 private:
  AnnealedSchedule schedule_;
};

AnnealedScheduleConfig annealed(const config::ScheduleFact& fact, int64_t steps) {
  AnnealedScheduleConfig config;
  config.init_lr = fact.lr_warmup_init;
  config.max_lr = fact.lr;
  config.min_lr = fact.min_lr;
  config.lr_warmup_steps = fact.lr_warmup_iters;
  config.lr_decay_steps = fact.lr_decay_iters.value_or(steps);
  config.lr_decay_style = fact.lr_decay_style;
  config.start_wd = fact.start_weight_decay;
  config.end_wd = fact.end_weight_decay;
  config.wd_incr_style = fact.weight_decay_incr_style;
  config.wd_incr_steps = steps;
  config.wsd_decay_steps = fact.lr_wsd_decay_iters.value_or(config.lr_decay_steps);
  config.lr_wsd_decay_style = fact.lr_wsd_decay_style;
  return config;
}

}  // namespace

std::unique_ptr<Schedule> make_schedule(const config::RunConfig& run) {
  const config::PolicyConfig& policy = run.policy;
  if (policy.schedule) return std::make_unique<AnnealedRate>(annealed(*policy.schedule, max_num_steps(run)));
  const double rate = policy.learning_rate.value_or(policy.optimizer.kwargs.value("lr", kTorchRate));
  return std::make_unique<TorchSchedule>(policy.scheduler, rate);
}

}  // namespace hexad::algorithm
