#include "core/algorithm/schedule/lr_schedule_torch.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <set>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::algorithm::detail {
namespace {

using Json = nlohmann::ordered_json;
using std::numbers::pi;

// The keyword arguments of one scheduler; finish() refuses those that nobody read.
class Kwargs {
 public:
  Kwargs(const Json& values, std::string path) : values_(values), path_(std::move(path)) {}

  double number(const std::string& key, std::optional<double> otherwise = {}) {
    const Json* value = find(key, otherwise.has_value());
    if (!value) return *otherwise;
    if (!value->is_number()) refuse(key, "a number", json_text(*value));
    return value->get<double>();
  }
  int64_t integer(const std::string& key, std::optional<int64_t> otherwise = {}) {
    const Json* value = find(key, otherwise.has_value());
    if (!value) return *otherwise;
    if (!value->is_number_integer()) refuse(key, "an integer", json_text(*value));
    return value->get<int64_t>();
  }
  bool flag(const std::string& key, bool otherwise) {
    const Json* value = find(key, true);
    if (!value) return otherwise;
    if (!value->is_boolean()) refuse(key, "true or false", json_text(*value));
    return value->get<bool>();
  }
  std::string text(const std::string& key, const std::string& otherwise) {
    const Json* value = find(key, true);
    return value && value->is_string() ? value->get<std::string>() : otherwise;
  }
  std::vector<int64_t> integers(const std::string& key) {
    const Json* value = find(key, false);
    const bool whole = value->is_array() &&
                       std::all_of(value->begin(), value->end(), [](const Json& v) { return v.is_number_integer(); });
    if (!whole) refuse(key, "a list of integers", json_text(*value));
    return value->get<std::vector<int64_t>>();
  }
  [[noreturn]] void refuse(const std::string& key, const std::string& want, const std::string& got) {
    fail(ErrorKind::config, "{}.kwargs.{}: want {}, got {}", path_, key, want, got);
  }
  void finish() {
    if (integer("last_epoch", -1) != -1) refuse("last_epoch", "-1 (a run resumes by itself)", "another value");
    std::vector<std::string> known(seen_.begin(), seen_.end());
    for (const auto& [key, value] : values_.items()) {
      if (!seen_.contains(key)) {
        fail(ErrorKind::config, "{}.kwargs.{}: unknown argument; known: {}", path_, key, joined(known));
      }
    }
  }

 private:
  const Json* find(const std::string& key, bool optional) {
    seen_.insert(key);
    if (values_.is_object() && values_.contains(key) && !values_.at(key).is_null()) return &values_.at(key);
    if (!optional) fail(ErrorKind::config, "{}.kwargs.{}: is missing", path_, key);
    return nullptr;
  }

  const Json& values_;
  std::string path_;
  std::set<std::string> seen_;
};

class ConstantLr : public TorchScheduler {
 public:
  ConstantLr(Kwargs& kwargs, double& initial)
      : base_(initial), factor_(kwargs.number("factor", 1.0 / 3)), total_(kwargs.integer("total_iters", 5)) {
    if (!(factor_ >= 0 && factor_ <= 1)) kwargs.refuse("factor", "a number in [0, 1]", fmt::to_string(factor_));
  }

 private:
  double next(double rate, int64_t epoch) override {
    if (epoch == 0) return rate * factor_;
    return epoch == total_ ? rate * (1.0 / factor_) : rate;
  }
  double first(double) override { return base_ * (factor_ + (0 >= total_ ? 1 : 0) * (1 - factor_)); }
  double base_, factor_;
  int64_t total_;
};

class LinearLr : public TorchScheduler {
 public:
  LinearLr(Kwargs& kwargs, double& initial)
      : base_(initial),
        start_(kwargs.number("start_factor", 1.0 / 3)),
        end_(kwargs.number("end_factor", 1.0)),
        total_(kwargs.integer("total_iters", 5)) {
    if (!(start_ > 0 && start_ <= 1)) kwargs.refuse("start_factor", "a number in (0, 1]", fmt::to_string(start_));
    if (!(end_ >= 0 && end_ <= 1)) kwargs.refuse("end_factor", "a number in [0, 1]", fmt::to_string(end_));
  }

 private:
  double next(double rate, int64_t epoch) override {
    if (epoch == 0) return rate * start_;
    if (epoch > total_) return rate;
    const double span = end_ - start_;
    const double before = static_cast<double>(total_) * start_ + static_cast<double>(epoch - 1) * span;
    return rate * (1.0 + span / before);
  }
  double first(double) override { return base_ * start_; }
  double base_, start_, end_;
  int64_t total_;
};

class StepLr : public TorchScheduler {
 public:
  StepLr(Kwargs& kwargs, double& initial)
      : base_(initial), size_(kwargs.integer("step_size")), gamma_(kwargs.number("gamma", 0.1)) {
    if (size_ < 1) kwargs.refuse("step_size", "a positive integer", fmt::to_string(size_));
  }

 private:
  double next(double rate, int64_t epoch) override { return epoch == 0 || epoch % size_ != 0 ? rate : rate * gamma_; }
  double first(double) override { return base_; }
  double base_;
  int64_t size_;
  double gamma_;
};

class MultiStepLr : public TorchScheduler {
 public:
  MultiStepLr(Kwargs& kwargs, double& initial) : base_(initial), gamma_(kwargs.number("gamma", 0.1)) {
    for (int64_t milestone : kwargs.integers("milestones")) ++milestones_[milestone];
  }

 private:
  double next(double rate, int64_t epoch) override {
    const auto found = milestones_.find(epoch);
    return found == milestones_.end() ? rate : rate * std::pow(gamma_, found->second);
  }
  double first(double) override {
    int passed = 0;
    for (const auto& [milestone, count] : milestones_) passed += milestone <= 0 ? count : 0;
    return base_ * std::pow(gamma_, passed);
  }
  double base_, gamma_;
  std::map<int64_t, int> milestones_;
};

class ExponentialLr : public TorchScheduler {
 public:
  ExponentialLr(Kwargs& kwargs, double& initial) : base_(initial), gamma_(kwargs.number("gamma")) {}

 private:
  double next(double rate, int64_t epoch) override { return epoch == 0 ? rate : rate * gamma_; }
  double first(double) override { return base_; }
  double base_, gamma_;
};

class PolynomialLr : public TorchScheduler {
 public:
  PolynomialLr(Kwargs& kwargs, double& initial)
      : base_(initial), total_(kwargs.integer("total_iters", 5)), power_(kwargs.number("power", 1.0)) {}

 private:
  double next(double rate, int64_t epoch) override {
    if (epoch == 0 || epoch > total_) return rate;
    const double total = static_cast<double>(total_), now = static_cast<double>(epoch);
    return rate * std::pow((1.0 - now / total) / (1.0 - (now - 1) / total), power_);
  }
  double first(double) override { return base_; }
  double base_;
  int64_t total_;
  double power_;
};

class CosineAnnealingLr : public TorchScheduler {
 public:
  CosineAnnealingLr(Kwargs& kwargs, double& initial)
      : base_(initial), period_(kwargs.integer("T_max")), min_(kwargs.number("eta_min", 0.0)) {
    if (period_ < 1) kwargs.refuse("T_max", "a positive integer", fmt::to_string(period_));
  }

 private:
  double next(double rate, int64_t epoch) override {
    if (epoch == 0) return rate;
    const double period = static_cast<double>(period_), now = static_cast<double>(epoch);
    // The recursion below divides by zero right after a minimum.
    if ((epoch - 1 - period_) % (2 * period_) == 0) return rate + (base_ - min_) * (1 - std::cos(pi / period)) / 2;
    return (1 + std::cos(pi * now / period)) / (1 + std::cos(pi * (now - 1) / period)) * (rate - min_) + min_;
  }
  double first(double) override { return base_; }
  double base_;
  int64_t period_;
  double min_;
};

class CosineAnnealingWarmRestarts : public TorchScheduler {
 public:
  CosineAnnealingWarmRestarts(Kwargs& kwargs, double& initial)
      : base_(initial),
        period_(kwargs.integer("T_0")),
        first_period_(period_),
        multiplier_(kwargs.integer("T_mult", 1)),
        min_(kwargs.number("eta_min", 0.0)) {
    if (period_ < 1) kwargs.refuse("T_0", "a positive integer", fmt::to_string(period_));
    if (multiplier_ < 1) kwargs.refuse("T_mult", "a positive integer", fmt::to_string(multiplier_));
  }

 private:
  double next(double, int64_t epoch) override {
    if (epoch == 0) {
      position_ = 0;
      period_ = first_period_;
    } else if (++position_ >= period_) {
      position_ -= period_;
      period_ *= multiplier_;
    }
    const double angle = pi * static_cast<double>(position_) / static_cast<double>(period_);
    return min_ + (base_ - min_) * (1 + std::cos(angle)) / 2;
  }
  double base_;
  int64_t period_, first_period_, multiplier_;
  int64_t position_ = 0;
  double min_;
};

class OneCycleLr : public TorchScheduler {
 public:
  OneCycleLr(Kwargs& kwargs, double& initial) {
    total_ = kwargs.integer("total_steps", kwargs.integer("epochs", 0) * kwargs.integer("steps_per_epoch", 0));
    if (total_ < 1)
      kwargs.refuse("total_steps", "a positive integer (or epochs and steps_per_epoch)", fmt::to_string(total_));
    const double peak = kwargs.number("max_lr"), rise = kwargs.number("pct_start", 0.3);
    if (!(rise >= 0 && rise <= 1)) kwargs.refuse("pct_start", "a number in [0, 1]", fmt::to_string(rise));
    const std::string strategy = kwargs.text("anneal_strategy", "cos");
    if (strategy != "cos" && strategy != "linear") kwargs.refuse("anneal_strategy", "cos or linear", strategy);
    cosine_ = strategy == "cos";
    const double start = peak / kwargs.number("div_factor", 25.0);
    const double end = start / kwargs.number("final_div_factor", 1e4);
    // Momentum is not cycled: the optimizers here have none.
    for (const char* key : {"base_momentum", "max_momentum"}) kwargs.number(key, 0.0);
    kwargs.flag("cycle_momentum", true);
    const double steps = static_cast<double>(total_);
    if (kwargs.flag("three_phase", false)) {
      phases_ = {{rise * steps - 1, start, peak}, {2 * rise * steps - 2, peak, start}, {steps - 1, start, end}};
    } else {
      phases_ = {{rise * steps - 1, start, peak}, {steps - 1, peak, end}};
    }
    initial = start;
  }

 private:
  struct Phase {
    double end, from, to;
  };
  double next(double, int64_t epoch) override {
    if (epoch >= total_) {
      fail(ErrorKind::config, "policy.scheduler: OneCycleLR has {} steps and the run goes beyond them", total_);
    }
    const double now = static_cast<double>(epoch);
    double begin = 0;
    for (const Phase& phase : phases_) {
      if (now <= phase.end || &phase == &phases_.back()) {
        const double part = (now - begin) / (phase.end - begin);
        if (!cosine_) return (phase.to - phase.from) * part + phase.from;
        return phase.to + (phase.from - phase.to) / 2.0 * (std::cos(pi * part) + 1);
      }
      begin = phase.end;
    }
    return phases_.back().to;
  }
  int64_t total_ = 0;
  bool cosine_ = true;
  std::vector<Phase> phases_;
};

using Maker = std::function<std::unique_ptr<TorchScheduler>(Kwargs&, double&)>;

template <typename T>
Maker maker() {
  return [](Kwargs& kwargs, double& initial) { return std::make_unique<T>(kwargs, initial); };
}

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> all = {
      {"ConstantLR", maker<ConstantLr>()},
      {"LinearLR", maker<LinearLr>()},
      {"StepLR", maker<StepLr>()},
      {"MultiStepLR", maker<MultiStepLr>()},
      {"ExponentialLR", maker<ExponentialLr>()},
      {"PolynomialLR", maker<PolynomialLr>()},
      {"CosineAnnealingLR", maker<CosineAnnealingLr>()},
      {"CosineAnnealingWarmRestarts", maker<CosineAnnealingWarmRestarts>()},
      {"OneCycleLR", maker<OneCycleLr>()},
  };
  return all;
}

}  // namespace

std::unique_ptr<TorchScheduler> make_torch_scheduler(const Json& config, const std::string& path, double& initial) {
  if (!config.is_object() || !config.contains("name") || !config.at("name").is_string()) {
    fail(ErrorKind::config, "{}: want {{name, kwargs}}, got {}", path, json_text(config));
  }
  std::string name = config.at("name");
  const std::string module = "torch.optim.lr_scheduler.";
  if (name.starts_with(module)) name = name.substr(module.size());
  const auto found = makers().find(name);
  if (found == makers().end()) {
    std::vector<std::string> names;
    for (const auto& entry : makers()) names.push_back(entry.first);
    fail(ErrorKind::config, "{}.name: unknown scheduler '{}'{}; known: {}", path, name, did_you_mean(name, names),
         joined(names));
  }
  const Json none = Json::object();
  Kwargs kwargs(config.contains("kwargs") && !config.at("kwargs").is_null() ? config.at("kwargs") : none, path);
  std::unique_ptr<TorchScheduler> scheduler = found->second(kwargs, initial);
  kwargs.finish();
  return scheduler;
}

}  // namespace hexad::algorithm::detail
