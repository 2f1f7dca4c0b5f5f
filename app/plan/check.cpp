#include "app/plan/check.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "app/plan/advice.hpp"
#include "app/plan/memory_plan.hpp"
#include "lib/base/text.hpp"

namespace hexad::plan {
namespace {

constexpr const char* kKey = "policy.model_name";

// "parameters 15.0 GiB, gradients 29.9 GiB".
std::string parts_text(const std::vector<Part>& parts) {
  std::vector<std::string> texts;
  for (const Part& part : parts)
    if (part.bytes > 0) texts.push_back(fmt::format("{} {}", part.name, bytes_text(part.bytes)));
  return joined(texts);
}

std::string helping(const config::Loaded& loaded, std::optional<int64_t> room, Of of) {
  const std::string keys = text_of(best_savings(loaded, room, 3, of));
  return keys.empty() ? "no key that is known here helps: take a smaller model or more ranks"
                      : fmt::format("what helps most: {}", keys);
}

}  // namespace

std::vector<config::Problem> check_memory(const config::Loaded& given, const Room& room) {
  if (!room.bytes) return {};
  const config::Loaded loaded = on_device(given, room.on_cards);
  const MemoryPlan plan = memory_plan(loaded, room.bytes);
  const Phase* worst = plan.worst();
  const bool refused = room.is_meant && plan.held.sum() > *room.bytes;
  if (!refused && (!worst || worst->sum() <= *room.bytes)) return {};
  const std::string what =
      refused ? fmt::format("a rank that trains would hold {} before it computes anything ({}), and {}",
                            bytes_text(plan.held.sum()), parts_text(plan.held.parts), room.what)
              : fmt::format("a rank may need {} in {} ({}), and {}", bytes_text(worst->sum()), worst->name,
                            parts_text(worst->parts), room.what);
  return {{refused ? config::Problem::Severity::error : config::Problem::Severity::notice,
           loaded.root.nearest(kKey).location(), kKey,
           fmt::format("{}; {} (`hexad plan` has it in parts)", what,
                       helping(loaded, room.bytes, refused ? Of::held : Of::worst_phase))}};
}

bool is_out_of_memory(const std::string& message) {
  for (const char* words : {"RESOURCE_EXHAUSTED", ": out of memory", "CUDA out of memory", "std::bad_alloc",
                            "can't allocate memory", "not enough memory"})
    if (message.find(words) != message.npos) return true;
  return false;
}

std::string with_advice(const std::string& message, const yaml::Node& root, const Room& room) {
  if (!is_out_of_memory(message)) return message;
  return fmt::format("{}\nout of memory: {}", message,
                     helping(on_device(loaded_again(root), room.on_cards), room.bytes, Of::worst_phase));
}

}  // namespace hexad::plan
