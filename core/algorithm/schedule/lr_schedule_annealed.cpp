#include "core/algorithm/schedule/lr_schedule_annealed.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::algorithm {
namespace {

using std::numbers::pi;

template <typename Style>
Style parse_style(const char* key, const std::string& text, const std::vector<std::pair<std::string, Style>>& known) {
  std::vector<std::string> names;
  for (const auto& [name, style] : known) {
    if (name == text) return style;
    names.push_back(name);
  }
  fail(ErrorKind::config, "{}: unknown style '{}'{}; known: {}", key, text, did_you_mean(text, names), joined(names));
}

double ratio(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }
// From 1 to 0 along half a cosine.
double cosine_fall(double at) { return 0.5 * (std::cos(pi * at) + 1.0); }

void check_rates(const AnnealedScheduleConfig& config) {
  // Negated comparisons refuse nan too.
  if (!(config.min_lr >= 0) || !(config.max_lr >= config.min_lr) || !(config.init_lr <= config.max_lr)) {
    fail(ErrorKind::config,
         "learning rates: want 0 <= min_lr <= max_lr and init_lr <= max_lr, got min_lr {}, max_lr {}, "
         "init_lr {}",
         config.min_lr, config.max_lr, config.init_lr);
  }
  if (config.lr_decay_steps < 1 || config.lr_warmup_steps < 0 || config.lr_warmup_steps >= config.lr_decay_steps) {
    fail(ErrorKind::config, "learning rate steps: want 0 <= lr_warmup_steps < lr_decay_steps, got {} and {}",
         config.lr_warmup_steps, config.lr_decay_steps);
  }
}

void check_weight_decay(const AnnealedScheduleConfig& config) {
  if (!(config.start_wd >= 0) || !(config.end_wd >= config.start_wd)) {
    fail(ErrorKind::config, "weight decay: want 0 <= start_wd <= end_wd, got {} and {}", config.start_wd,
         config.end_wd);
  }
  if (config.wd_incr_style != "constant" && config.wd_incr_steps < 1) {
    fail(ErrorKind::config, "wd_incr_steps: is {}, want at least 1 with wd_incr_style {}", config.wd_incr_steps,
         config.wd_incr_style);
  }
}

void check_constant(double start, double end) {
  if (start != end) {
    fail(ErrorKind::config,
         "wd_incr_style constant: start_wd {} and end_wd {} differ; make them equal or choose linear "
         "or cosine",
         start, end);
  }
}

}  // namespace

AnnealedSchedule::AnnealedSchedule(const AnnealedScheduleConfig& config)
    : config_(config),
      decay_(parse_style<Decay>("lr_decay_style", config.lr_decay_style,
                                {{"constant", Decay::constant},
                                 {"linear", Decay::linear},
                                 {"cosine", Decay::cosine},
                                 {"inverse-square-root", Decay::inverse_square_root},
                                 {"WSD", Decay::wsd}})),
      increase_(parse_style<Increase>(
          "wd_incr_style", config.wd_incr_style,
          {{"constant", Increase::constant}, {"linear", Increase::linear}, {"cosine", Increase::cosine}})) {
  check_rates(config);
  check_weight_decay(config);
  if (increase_ == Increase::constant) check_constant(config.start_wd, config.end_wd);
  if (decay_ != Decay::wsd) return;
  if (!config.wsd_decay_steps || *config.wsd_decay_steps < 0 || !config.lr_wsd_decay_style) {
    fail(ErrorKind::config, "lr_decay_style WSD: wants wsd_decay_steps of 0 or more and lr_wsd_decay_style");
  }
  anneal_ = parse_style<Anneal>("lr_wsd_decay_style", *config.lr_wsd_decay_style,
                                {{"linear", Anneal::linear},
                                 {"cosine", Anneal::cosine},
                                 {"exponential", Anneal::exponential},
                                 {"minus_sqrt", Anneal::minus_sqrt}});
}

void AnnealedSchedule::advance(int64_t increment) {
  if (increment < 0) fail(ErrorKind::internal, "learning-rate schedule: cannot go back by {} steps", -increment);
  steps_ += increment;
}

double AnnealedSchedule::lr(const ParamGroupSchedule& group) const {
  const double max_lr = group.max_lr.value_or(config_.max_lr), min_lr = group.min_lr.value_or(config_.min_lr);
  const int64_t warmup = config_.lr_warmup_steps;
  if (warmup > 0 && steps_ <= warmup) {
    return config_.init_lr + (max_lr - config_.init_lr) * static_cast<double>(steps_) / static_cast<double>(warmup);
  }
  if (decay_ == Decay::constant) return max_lr;
  if (steps_ > config_.lr_decay_steps) return min_lr;
  if (decay_ == Decay::inverse_square_root) {
    const auto root = [](int64_t steps) { return std::sqrt(static_cast<double>(std::max<int64_t>(steps, 1))); };
    return std::max(min_lr, max_lr * root(warmup) / root(steps_));
  }
  return min_lr + decay_coefficient() * (max_lr - min_lr);
}

double AnnealedSchedule::decay_coefficient() const {
  if (decay_ == Decay::wsd) return wsd_coefficient();
  const double at = ratio(steps_ - config_.lr_warmup_steps, config_.lr_decay_steps - config_.lr_warmup_steps);
  return decay_ == Decay::linear ? 1.0 - at : cosine_fall(at);
}

double AnnealedSchedule::wsd_coefficient() const {
  const int64_t begin = config_.lr_decay_steps - *config_.wsd_decay_steps;
  if (steps_ <= begin) return 1.0;
  const double at = ratio(steps_ - begin, *config_.wsd_decay_steps);
  switch (anneal_) {
    case Anneal::linear: return 1.0 - at;
    case Anneal::cosine: return cosine_fall(at);
    case Anneal::exponential: return 2.0 * std::pow(0.5, at) - 1.0;
    case Anneal::minus_sqrt: return 1.0 - std::sqrt(at);
  }
  return 1.0;
}

double AnnealedSchedule::weight_decay(const ParamGroupSchedule& group) const {
  const double start = group.start_wd.value_or(config_.start_wd), end = group.end_wd.value_or(config_.end_wd);
  if (steps_ > config_.wd_incr_steps) return end * group.wd_mult;
  if (increase_ == Increase::constant) {
    check_constant(start, end);
    return end * group.wd_mult;
  }
  const double at = ratio(steps_, config_.wd_incr_steps);
  const double coefficient = increase_ == Increase::linear ? at : cosine_fall(1.0 - at);
  return (start + coefficient * (end - start)) * group.wd_mult;
}

}  // namespace hexad::algorithm
