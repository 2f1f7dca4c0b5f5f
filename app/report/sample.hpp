// A logged sample as the page shows it.
#pragma once
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

namespace hexad::report {

// Tokens that the model wrote; nothing if the line does not tell.
std::optional<int64_t> response_length(const nlohmann::ordered_json& line);

// {"step", "row", "reward", "advantage", "length", "prompt", "response"} and what the line has of "expected",
// "components", "truncated", "left_loss"; of its tokens from the first that the model wrote, {"tokens": [text],
// "written": [0 or 1], "train": [log-prob], "rollout": [log-prob], "left_out": {"at", "count"}}. The middle of a long
// sample is left out, and counted. Lines of other writers may lack any key.
nlohmann::ordered_json report_sample(const nlohmann::ordered_json& line, int64_t step, size_t row);

}  // namespace hexad::report
