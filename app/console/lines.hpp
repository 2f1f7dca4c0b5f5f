// What a run says in whole lines: what it works on, its steps, what validation found.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/console/output.hpp"
#include "core/algorithm/run/console.hpp"

namespace hexad::console {

using telemetry::Metrics;

// A line of the start begins with a word in so many columns.
constexpr size_t kLabelWidth = 10;

// The run's device and cards, model and size, rows, plugins (with their files where those are not of `own_plugins`, the
// program's), which ranks do what in which layout, and its log folder.
std::vector<std::string> start_lines(const algorithm::Started& started, const std::filesystem::path& own_plugins);

struct Line {
  std::string text;
  std::vector<Mark> marks = {};
};

// "step 12/200  reward 0.412  loss 0.013  grad 1.5  mismatch 1.01  length 3.2", "  time 3.20 s  1,340 tok/s  12 min
// left" and "  (generation 55%, policy_training 30%)": metrics of the step (grad: grad_norm, mismatch:
// token_mult_prob_error), its time and what is left, and the parts of its time, largest first.
struct StepText {
  std::string head;  // "step 12/200"
  std::string metrics, time, parts;
};
StepText step_text(int64_t step, int64_t last_step, const Metrics& train, const Metrics& timing, const Metrics& rates,
                   std::optional<double> left_s);

// "validation after step 20:  accuracy 0.42 (+0.03)": with what has changed since the validation before, by prefix.
// Empty where it found nothing that has a place here.
class Validations {
 public:
  Line line(int64_t after, const std::string& prefix, const Metrics& metrics);

 private:
  std::map<std::string, Metrics> before_;
};

// The first and the newest value of a metric, and the steps after which they were measured; 0: before the first.
struct Span {
  std::optional<double> first = {}, newest = {};
  int64_t first_after = 0, newest_after = 0;
  void add(int64_t after, const Metrics& metrics, const char* key);
};

// "accuracy 0.115 before, 0.785 after" where it was measured before step 1 and after `last`, the newest step; else
// which steps it was measured after: "accuracy 0.4 after step 20, 0.785 after step 40", "accuracy 0.115 before step 1".
std::string change_text(const std::string& name, const Span& span, int64_t last);

}  // namespace hexad::console
