// The learning rate and the weight decay of every parameter group over training, as NVIDIA's OptimizerParamScheduler
// anneals them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hexad::algorithm {

// The schedule's parameters. Steps are counted in whatever advance() counts: samples or steps.
struct AnnealedScheduleConfig {
  double init_lr = 0, max_lr = 0, min_lr = 0;
  int64_t lr_warmup_steps = 0;            // linear from init_lr to max_lr
  int64_t lr_decay_steps = 1;             // from the begin of training; min_lr after it
  std::string lr_decay_style = "linear";  // constant, linear, cosine, inverse-square-root, WSD
  double start_wd = 0, end_wd = 0;
  int64_t wd_incr_steps = 0;
  std::string wd_incr_style = "constant";  // constant, linear, cosine
  // WSD (warm-up, stable, decay): the last wsd_decay_steps of lr_decay_steps fall in this style: linear, cosine,
  // exponential, minus_sqrt.
  std::optional<int64_t> wsd_decay_steps = {};
  std::optional<std::string> lr_wsd_decay_style = {};
};

// What one parameter group has of its own; absent: the schedule's.
struct ParamGroupSchedule {
  std::optional<double> max_lr = {}, min_lr = {}, start_wd = {}, end_wd = {};
  double wd_mult = 1;  // 0 for biases and norms
};

// optimizer_param_scheduler.py:OptimizerParamScheduler of NVIDIA's trainer, in double precision. Its whole state is the
// number of steps.
class AnnealedSchedule {
 public:
  // Throws Error(config) for an unknown style, rates that are not 0 <= min_lr <= max_lr >= init_lr, warm-up that is not
  // shorter than decay, a falling weight decay, a constant one with two ends, WSD without its two keys.
  explicit AnnealedSchedule(const AnnealedScheduleConfig& config);

  int64_t steps() const { return steps_; }
  // Counts on; `increment` is not negative.
  void advance(int64_t increment);
  double lr(const ParamGroupSchedule& group = {}) const;
  // Throws Error(config) for a group whose own ends do not fit a constant style.
  double weight_decay(const ParamGroupSchedule& group = {}) const;

 private:
  enum class Decay { constant, linear, cosine, inverse_square_root, wsd };
  enum class Anneal { linear, cosine, exponential, minus_sqrt };
  enum class Increase { constant, linear, cosine };

  double decay_coefficient() const;
  double wsd_coefficient() const;

  AnnealedScheduleConfig config_;
  Decay decay_;
  Anneal anneal_ = Anneal::linear;
  Increase increase_;
  int64_t steps_ = 0;
};

}  // namespace hexad::algorithm
