#include "core/algorithm/schedule.hpp"

#include <cmath>

#include "core/algorithm/lr_schedule.hpp"
#include "core/algorithm/lr_schedule_megatron.hpp"

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

class MegatronRate : public Schedule {
 public:
  explicit MegatronRate(const MegatronScheduleConfig& config) : schedule_(config) {}
  double rate() const override { return schedule_.lr(); }
  double weight_decay() const override { return schedule_.weight_decay(); }
  void step() override { schedule_.advance(1); }
  void advance_to(int64_t count) override { schedule_.advance(count - schedule_.steps()); }

 private:
  MegatronSchedule schedule_;
};

MegatronScheduleConfig megatron_schedule(const config::MegatronOptimizerConfig& optimizer,
                                         const config::MegatronSchedulerConfig& scheduler, int64_t steps) {
  MegatronScheduleConfig config;
  config.init_lr = scheduler.lr_warmup_init;
  config.max_lr = optimizer.lr;
  config.min_lr = optimizer.min_lr;
  config.lr_warmup_steps = scheduler.lr_warmup_iters;
  config.lr_decay_steps = scheduler.lr_decay_iters;
  config.lr_decay_style = scheduler.lr_decay_style;
  config.start_wd = scheduler.start_weight_decay;
  config.end_wd = scheduler.end_weight_decay;
  config.wd_incr_style = scheduler.weight_decay_incr_style;
  config.wd_incr_steps = steps;
  config.wsd_decay_steps = scheduler.lr_wsd_decay_iters;
  config.lr_wsd_decay_style = scheduler.lr_wsd_decay_style;
  return config;
}

}  // namespace

std::unique_ptr<Schedule> make_schedule(const config::RunConfig& run) {
  const config::PolicyConfig& policy = run.policy;
  const config::MegatronConfig& megatron = policy.megatron_cfg;
  if (policy.backend == "megatron" && megatron.scheduler) {
    return std::make_unique<MegatronRate>(
        megatron_schedule(megatron.optimizer, *megatron.scheduler, max_num_steps(run)));
  }
  const double rate =
      policy.backend == "megatron" ? megatron.optimizer.lr : policy.optimizer.kwargs.value("lr", kTorchRate);
  return std::make_unique<TorchSchedule>(policy.scheduler, rate);
}

}  // namespace hexad::algorithm
