// What a record of a countdown dataset asks for.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace countdown {

struct Task {
  std::vector<int64_t> numbers;
  int64_t target = 0;
};

// From the record's fields: "nums" or "numbers", a list of integers, and "target", an integer; without "target" the
// ground truth is it. Nothing if either is not there.
std::optional<Task> read_task(std::string_view metadata, std::string_view ground_truth);

}  // namespace countdown
