// A plan as a page for people, and as JSON.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/plan/advice.hpp"
#include "app/plan/memory_plan.hpp"
#include "app/plan/room.hpp"

namespace hexad::plan {

// A line a part, the sum of each phase and whether it fits, what is not known, and the keys that help.
std::string table(const MemoryPlan& plan, const Room& room, const std::vector<Saving>& savings);

// {"room", "held", "phases": [{"name", "parts": {name: bytes}, "sum", "unknown": [text]}], "worst", "fits", "savings":
// [{"key", "value", "bytes"}]}; null where a number is not known. "fits" is false where a sum, known or the least that
// it can be, exceeds the room, and null where nothing says so or otherwise.
nlohmann::ordered_json json_of(const MemoryPlan& plan, const Room& room, const std::vector<Saving>& savings);

// False where it does not fit; nothing where that is not known.
std::optional<bool> fits(const MemoryPlan& plan, const Room& room);

}  // namespace hexad::plan
