#include "core/algorithm/schedule/lr_schedule.hpp"

#include <algorithm>
#include <vector>

#include "core/algorithm/schedule/lr_schedule_torch.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::algorithm {

using Json = nlohmann::ordered_json;
using detail::TorchScheduler;

struct LrSchedule::State {
  std::vector<std::unique_ptr<TorchScheduler>> phases;  // empty: constant
  std::vector<int64_t> milestones;                      // phases.size() - 1, ascending
  int64_t steps = 0;
  double rate = 0;
};

namespace {

constexpr const char* kPath = "policy.scheduler";

void read_list(const Json& list, std::vector<std::unique_ptr<TorchScheduler>>& phases, std::vector<int64_t>& milestones,
               double& initial) {
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", kPath, i);
    const Json& element = list[i];
    if (element.is_object() && element.contains("name")) {
      phases.push_back(detail::make_torch_scheduler(element, path, initial));
      continue;
    }
    const bool whole = element.is_object() && element.contains("milestones") && element["milestones"].is_array() &&
                       std::all_of(element["milestones"].begin(), element["milestones"].end(),
                                   [](const Json& value) { return value.is_number_integer(); });
    if (!whole) {
      fail(ErrorKind::config, "{}: want {{name, kwargs}} or {{milestones: [integers]}}, got {}", path,
           json_text(element));
    }
    milestones = element["milestones"].get<std::vector<int64_t>>();
  }
  if (phases.empty()) fail(ErrorKind::config, "{}: the list names no scheduler", kPath);
  if (milestones.size() + 1 != phases.size() || !std::is_sorted(milestones.begin(), milestones.end())) {
    fail(ErrorKind::config, "{}: {} schedulers want {} ascending milestones, got [{}]", kPath, phases.size(),
         phases.size() - 1, joined(milestones));
  }
}

}  // namespace

LrSchedule::LrSchedule(const Json& scheduler, double base) : state_(std::make_unique<State>()) {
  double initial = base;
  if (scheduler.is_array()) {
    read_list(scheduler, state_->phases, state_->milestones, initial);
  } else if (!scheduler.is_null()) {
    state_->phases.push_back(detail::make_torch_scheduler(scheduler, kPath, initial));
  }
  state_->rate = state_->phases.empty() ? base : state_->phases[0]->step(initial);
}

LrSchedule::LrSchedule(LrSchedule&&) noexcept = default;
LrSchedule& LrSchedule::operator=(LrSchedule&&) noexcept = default;
LrSchedule::~LrSchedule() = default;

double LrSchedule::rate() const { return state_->rate; }
int64_t LrSchedule::steps() const { return state_->steps; }

void LrSchedule::step() {
  State& state = *state_;
  ++state.steps;
  if (state.phases.empty()) return;
  const auto& milestones = state.milestones;
  const size_t index = std::upper_bound(milestones.begin(), milestones.end(), state.steps) - milestones.begin();
  const bool enters = index > 0 && milestones[index - 1] == state.steps;
  state.rate = enters ? state.phases[index]->restart(state.rate) : state.phases[index]->step(state.rate);
}

void LrSchedule::advance_to(int64_t count) {
  if (count < state_->steps) {
    fail(ErrorKind::internal, "learning-rate schedule: cannot go back from step {} to {}", state_->steps, count);
  }
  while (state_->steps < count) step();
}

}  // namespace hexad::algorithm
