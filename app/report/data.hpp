// What the script of report.html draws of a run.
#pragma once
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

}  // namespace hexad::report
