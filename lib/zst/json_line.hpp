// A line of JSON with long lists of numbers, which are printed without a tree of them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

namespace hexad::zst {

// None is null.
using Numbers = std::variant<std::monostate, std::span<const int64_t>, std::span<const float>>;

// The object `head`, with at least one member, and behind it `lists` by their names, which need no escapes. Numbers are
// as short as reads back to the same value of their type; those that are not finite are null.
std::string json_line(const nlohmann::ordered_json& head, const std::vector<std::pair<const char*, Numbers>>& lists);

}  // namespace hexad::zst
