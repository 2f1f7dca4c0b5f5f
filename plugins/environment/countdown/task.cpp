#include "task.hpp"

#include <charconv>

#include <nlohmann/json.hpp>

namespace countdown {
namespace {

using Json = nlohmann::json;

std::optional<int64_t> integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> integer(const Json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  return value.is_string() ? integer(std::string_view(value.get_ref<const std::string&>())) : std::nullopt;
}

}  // namespace

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

}  // namespace countdown
