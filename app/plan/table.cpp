#include "app/plan/table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hexad::plan {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json json_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

std::string verdict(const Phase& phase, const Room& room) {
  if (!room.bytes) return "";
  if (phase.sum() > *room.bytes) return fmt::format("   {} too many", bytes_text(phase.sum() - *room.bytes));
  return phase.unknown.empty() ? "   fits" : "";
}

std::string rows_of(const Phase& phase, const Room& room) {
  std::string rows;
  const auto row = [&](const std::string& name, const std::string& part, int64_t bytes, const std::string& end) {
    rows += fmt::format("{:<12}{:<20}{:>12}{}\n", name, part, bytes_text(bytes), end);
  };
  for (const Part& part : phase.parts)
    if (part.bytes > 0) row("", part.name, part.bytes, "");
  row(phase.name, phase.unknown.empty() ? "sum" : "sum, at least", phase.sum(), verdict(phase, room));
  for (const std::string& what : phase.unknown) rows += fmt::format("{:<12}{}\n", "", what);
  return rows + '\n';
}

}  // namespace

std::optional<bool> fits(const MemoryPlan& plan, const Room& room) {
  if (!room.bytes) return std::nullopt;
  if (std::ranges::any_of(plan.phases, [&](const Phase& phase) { return phase.sum() > *room.bytes; })) return false;
  const bool known = !plan.phases.empty() &&
                     std::ranges::all_of(plan.phases, [](const Phase& phase) { return phase.unknown.empty(); });
  return known ? std::optional(true) : std::nullopt;
}

std::string table(const MemoryPlan& plan, const Room& room, const std::vector<Saving>& savings) {
  std::string text;
  for (const Phase& phase : plan.phases) text += rows_of(phase, room);
  const Phase* worst = plan.worst();
  if (!worst) return text + "nothing is known of what this configuration holds\n";
  text += fmt::format("most: {} in {}; {}\n", bytes_text(worst->sum()), worst->name, room.what);
  for (const Saving& saving : savings)
    text += fmt::format("saves {:>10}: {}={}\n", bytes_text(saving.bytes), saving.key, saving.value);
  return text;
}

Json json_of(const MemoryPlan& plan, const Room& room, const std::vector<Saving>& savings) {
  Json answer = {{"room", json_or_null(room.bytes)},
                 {"held", plan.held.unknown.empty() ? Json(plan.held.sum()) : Json()},
                 {"phases", Json::array()}};
  for (const Phase& phase : plan.phases) {
    Json parts = Json::object();
    for (const Part& part : phase.parts) parts[part.name] = part.bytes;
    answer["phases"].push_back(
        {{"name", phase.name}, {"parts", parts}, {"sum", phase.sum()}, {"unknown", phase.unknown}});
  }
  const Phase* worst = plan.worst();
  answer["worst"] = worst ? Json(worst->name) : Json();
  answer["fits"] = json_or_null(fits(plan, room));
  answer["savings"] = Json::array();
  for (const Saving& saving : savings)
    answer["savings"].push_back({{"key", saving.key}, {"value", saving.value}, {"bytes", saving.bytes}});
  return answer;
}

}  // namespace hexad::plan
