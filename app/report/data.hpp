// What the script of report.html draws of a run.
#pragma once
#include <nlohmann/json.hpp>

#include "app/report/run_record.hpp"

namespace hexad::report {

// {"name", "directory", "continues": [name], "steps": [...], "times": [...], "hours": [...], "series": {key: ...},
//  "summary": {key: ...}, "time": ..., "config": text, "settings": {key: text}} (series.hpp).
nlohmann::ordered_json metrics_data(const RunRecord& run);

// {"directory", "lengths": [{"step", "values": [...]}], "samples": [...]} (sample.hpp) of a few steps from first to
// last; `runs` of the page share the room for them. Where a step's log does not say the lengths of all its responses
// and is too long to be read, its values are those of the "first" N, which is said.
nlohmann::ordered_json samples_data(const RunRecord& run, size_t runs);

}  // namespace hexad::report
