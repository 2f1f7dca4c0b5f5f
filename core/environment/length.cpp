#include "core/environment/length.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/environment/arguments.hpp"
#include "lib/base/error.hpp"

namespace hexad::environment {
namespace {

class LinearLength : public Environment {
 public:
  explicit LinearLength(const nlohmann::ordered_json& values) {
    const Arguments arguments("length", values, {"schedule", "full_at", "none_at"});
    if (arguments.choice("schedule", "linear", {"linear", "cosine"}) == "cosine")
      fail(ErrorKind::config,
           "env.length.schedule: cosine asks whether a response is right: make it a part of env.<name>.rewards, with "
           "`of` naming the part that tells");
    full_at_ = static_cast<double>(arguments.integer("full_at", -1, 0));
    none_at_ = static_cast<double>(arguments.integer("none_at", -1, 0));
    if (full_at_ < 0 || none_at_ < 0 || full_at_ == none_at_)
      fail(ErrorKind::config, "env.length: want two different numbers of tokens, full_at (reward 1) and none_at (0)");
  }

  Scores score(std::span<const Sample> samples, int64_t) const override {
    Scores scores;
    scores.invalid.assign(samples.size(), 0);
    for (const Sample& sample : samples) {
      const double part = (none_at_ - static_cast<double>(sample.response_tokens)) / (none_at_ - full_at_);
      scores.rewards.push_back(static_cast<float>(std::clamp(part, 0.0, 1.0)));
    }
    return scores;
  }
  bool compares_answer() const override { return false; }

 private:
  double full_at_, none_at_;
};

}  // namespace

CosineLength::CosineLength(const nlohmann::ordered_json& values) {
  const Arguments arguments(
      "length", values,
      {"schedule", "of", "max_tokens", "min_value_wrong", "max_value_wrong", "min_value_correct", "max_value_correct"});
  of_ = arguments.text("of", "");
  min_wrong_ = arguments.number("min_value_wrong", -1.0);
  max_wrong_ = arguments.number("max_value_wrong", -0.5);
  min_correct_ = arguments.number("min_value_correct", 0.5);
  max_correct_ = arguments.number("max_value_correct", 1.0);
  max_tokens_ = arguments.integer("max_tokens", 1000, 1);
}

float CosineLength::reward(const Sample& sample, bool right) const {
  const double progress = std::min(static_cast<double>(sample.response_tokens) / static_cast<double>(max_tokens_), 1.0);
  const double c = (1 + std::cos(std::numbers::pi * progress)) / 2;
  const double value =
      right ? min_correct_ + (max_correct_ - min_correct_) * c : max_wrong_ + (min_wrong_ - max_wrong_) * c;
  return static_cast<float>(value);
}

std::unique_ptr<Environment> make_length(const nlohmann::ordered_json& arguments) {
  return std::make_unique<LinearLength>(arguments);
}

}  // namespace hexad::environment
