// The numbers game (countdown): reach a target with given numbers, each used once. Rewards as in TinyZero: 1 for an
// equation that is right, format_reward for one that is well formed and wrong, else 0.
//
// env.<name>: {plugin: countdown, plugin_config: {format_reward: 0.1, tag: answer, use_all: true}}
#include <hexad/environment.hpp>

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "expression.hpp"

namespace countdown {
namespace {

using namespace hexad::sdk;
using Json = nlohmann::json;

// What a record of a countdown dataset asks for.
struct Task {
  std::vector<int64_t> numbers;
  int64_t target = 0;
};

std::optional<int64_t> integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> integer(const Json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  return value.is_string() ? integer(std::string_view(value.get_ref<const std::string&>())) : std::nullopt;
}

// From the record's fields: "nums" or "numbers", a list of integers, and "target", an integer; without "target" the
// ground truth is it. Nothing if either is not there.
std::optional<Task> read_task(std::string_view metadata, std::string_view ground_truth) {
  const Json record = Json::parse(metadata, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object()) return std::nullopt;
  const char* key = record.contains("nums") ? "nums" : "numbers";
  const auto target = record.contains("target") ? integer(record.at("target")) : integer(ground_truth);
  if (!target || !record.contains(key) || !record.at(key).is_array() || record.at(key).empty()) return std::nullopt;
  Task task{{}, *target};
  for (const Json& each : record.at(key)) {
    const auto number = integer(each);
    if (!number) return std::nullopt;
    task.numbers.push_back(*number);
  }
  return task;
}

// The text in the last <tag>...</tag>; nothing if there is none.
std::optional<std::string_view> last_tagged(std::string_view text, const std::string& tag) {
  const std::string open = "<" + tag + ">", close = "</" + tag + ">";
  const size_t end = text.rfind(close);
  const size_t begin = end == text.npos ? text.npos : text.rfind(open, end);
  if (begin == text.npos) return std::nullopt;
  return text.substr(begin + open.size(), end - begin - open.size());
}

// Each number used at most as often as it is given; with `all`, exactly as often.
bool uses(std::vector<int64_t> used, std::vector<int64_t> given, bool all) {
  std::sort(used.begin(), used.end());
  std::sort(given.begin(), given.end());
  return all ? used == given : std::includes(given.begin(), given.end(), used.begin(), used.end());
}

class Countdown {
 public:
  enum Component : size_t { kFormat, kNumbers, kTarget };
  static constexpr const char* components[] = {"format", "numbers", "target"};

  Countdown(const Call&, const Config& config)
      : format_reward_(config.get("format_reward", 0.1)),
        tag_(config.get("tag", "answer")),
        use_all_(config.get("use_all", true)) {
    if (!(format_reward_ >= 0 && format_reward_ < 1)) {
      fail(HEXAD_INVALID_ARGUMENT, "format_reward must lie in [0, 1), got %g", format_reward_);
    }
    if (tag_.empty() || tag_.size() > 64 || tag_.find_first_of("<>/") != std::string::npos) {
      fail(HEXAD_INVALID_ARGUMENT, "tag must be 1 to 64 characters without <, > and /, got '%.80s'", tag_.c_str());
    }
  }

  void score(const Call&, const SampleView& sample, ScoreOut& out) const {
    const std::optional<Task> task = read_task(sample.metadata(), sample.ground_truth());
    if (!task) return out.set_invalid();  // the record is to blame, not the response
    const auto answer = last_tagged(sample.response(), tag_);
    const auto expression = answer ? evaluate(*answer) : std::nullopt;
    const bool numbers = expression && uses(expression->numbers, task->numbers, use_all_);
    const bool target = expression && expression->denominator == 1 && expression->numerator == task->target;
    out.component(kFormat) = expression.has_value();
    out.component(kNumbers) = numbers;
    out.component(kTarget) = target;
    out.reward() = numbers && target ? 1.0f : expression ? static_cast<float>(format_reward_) : 0.0f;
  }

 private:
  double format_reward_;
  std::string tag_;
  bool use_all_;
};

}  // namespace
}  // namespace countdown

HEXAD_CPP_ENVIRONMENT(countdown::Countdown, "countdown", "1.0.0", "Apache-2.0")
