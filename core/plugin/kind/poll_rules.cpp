#include "core/plugin/kind/poll_rules.hpp"

#include <cmath>

#include <fmt/format.h>

namespace hexad::plugin {
namespace {

std::string wrong_spans(const hexad_completion& event) {
  if (event.num_spans < 1 || !event.spans) return "it has tokens and no version span";
  if (event.spans[0].start != 0) return fmt::format("its first version span begins at token {}", event.spans[0].start);
  for (int64_t i = 1; i < event.num_spans; ++i) {
    const int64_t before = event.spans[i - 1].start, start = event.spans[i].start;
    if (start <= before || start >= event.count)
      return fmt::format("its version spans begin at tokens {} and then {} of {}", before, start, event.count);
  }
  return "";
}

// What is wrong with an event, whatever was asked for; "" if nothing is.
std::string wrong_event(const hexad_completion& event) {
  if (event.finish < HEXAD_FINISH_NONE || event.finish > HEXAD_FINISH_ERROR)
    return fmt::format("its finish is {}, which the ABI does not name", event.finish);
  if (event.finish == HEXAD_FINISH_ERROR) return "";  // what came before the error is thrown away
  if (event.count < 0) return fmt::format("its count is {}", event.count);
  if (HEXAD_HAS(&event, num_columns) && (event.num_columns < 0 || (event.num_columns > 0 && !event.columns)))
    return fmt::format("it has {} columns, and no list of them", event.num_columns);
  if (event.count == 0) return "";
  if (!event.tokens || !event.logprobs) return fmt::format("its {} tokens or their log-probs are NULL", event.count);
  for (int64_t i = 0; i < event.count; ++i) {
    if (event.tokens[i] < 0) return fmt::format("its token {} is {}", i, event.tokens[i]);
    if (!std::isfinite(event.logprobs[i]))
      return fmt::format("the log-prob of its token {} is {}", i, event.logprobs[i]);
  }
  return wrong_spans(event);
}

}  // namespace

std::optional<BrokenRule> broken_rule_of_poll(std::span<const hexad_completion* const> events, int64_t count) {
  if (count < 0 || count > static_cast<int64_t>(events.size()))
    return BrokenRule{"G1",
                      fmt::format("it says that it brought {} events, and has room for {}", count, events.size())};
  for (int64_t i = 0; i < count; ++i) {
    const hexad_completion* event = events[static_cast<size_t>(i)];
    if (!event) return BrokenRule{"G1", fmt::format("event {} of {} is NULL", i, count)};
    const std::string wrong = wrong_event(*event);
    if (!wrong.empty()) return BrokenRule{"G3", fmt::format("the completion of request {}: {}", event->id, wrong)};
  }
  return std::nullopt;
}

}  // namespace hexad::plugin
