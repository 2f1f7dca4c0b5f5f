#include "lib/text/tokenizer/pattern/class_pattern.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hexad::text {

void ClassPattern::add_others(std::string_view members) { open_.back().parts.push_back(fmt::format("[^{}]", members)); }

// The union of members and parts since the last &&; nothing is in an empty one.
std::string ClassPattern::side(const Class& open) {
  std::vector<std::string> parts = open.parts;
  if (!open.members.empty()) parts.insert(parts.begin(), fmt::format("[{}]", open.members));
  if (parts.empty()) return "(?!)";
  return parts.size() == 1 ? parts[0] : fmt::format("(?:{})", fmt::join(parts, "|"));
}

void ClassPattern::intersect() {
  Class& open = open_.back();
  open.sides.push_back(side(open));
  open.members.clear();
  open.parts.clear();
}

std::string ClassPattern::pattern(Class& open) {
  if (open.negative && open.sides.empty()) {
    const std::string others = open.members.empty() ? "(?s:.)" : fmt::format("[^{}]", open.members);
    return open.parts.empty() ? others : fmt::format("(?:(?!{}){})", fmt::join(open.parts, "|"), others);
  }
  std::string last = side(open);
  if (open.sides.empty()) return last;
  const std::string all = fmt::format("(?:(?={}){})", fmt::join(open.sides, ")(?="), last);
  return open.negative ? fmt::format("(?:(?!{})(?s:.))", all) : all;
}

std::string ClassPattern::close() {
  Class closed = std::move(open_.back());
  open_.pop_back();
  if (open_.empty()) return pattern(closed);
  const bool plain = !closed.negative && closed.parts.empty() && closed.sides.empty();
  // A hyphen at an end would make a range with its new neighbour.
  if (plain && !closed.members.starts_with('-') && !closed.members.ends_with('-'))
    add(closed.members);
  else
    open_.back().parts.push_back(pattern(closed));
  return "";
}

}  // namespace hexad::text
