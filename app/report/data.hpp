// What the script of report.html draws of a run, and of a line of its train_data_step<N>.jsonl.
#pragma once
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

#include "app/report/run_record.hpp"

namespace hexad::report {

// {"name", "directory", "steps": [...], "times": [...], "series": {key: [number or null]}, "config": text,
//  "settings": {key: text}, "lengths": [{"step", "values": [...]}], "samples": [...]}. The last two come from
// train_data_step<N>.jsonl of a few steps from first to last; `runs` of the page share the room for them. A sample is
// {"step", "row", "reward", "advantage", "length", "prompt", "response"} and, of its tokens from the first that the
// model wrote, {"tokens": [text], "written": [0 or 1], "train": [log-prob], "rollout": [log-prob],
// "left_out": {"at", "count"}}.
nlohmann::ordered_json report_data(const RunRecord& run, size_t runs);

// Tokens that the model wrote; nothing if the line does not tell.
std::optional<int64_t> response_length(const nlohmann::ordered_json& line);

// The sample's object in the page (see above). The middle of a long sample is left out, and counted. Lines of
// other writers may lack any key.
nlohmann::ordered_json report_sample(const nlohmann::ordered_json& line, int64_t step, size_t row);

}  // namespace hexad::report
