// The numbers of a run in a size that a page can hold, however many steps it has.
#pragma once
#include <nlohmann/json.hpp>

#include "app/report/run_record.hpp"

namespace hexad::report {

// A number as the page has it: five digits are more than a screen can show; null of one that is not finite.
nlohmann::ordered_json rounded(double value);

// Numbers of a series that the page has at most.
constexpr size_t kMostPoints = 2000;

// Up to kMostPoints rows: [number or null]. Of more {"rows": [...], "values": [...]}, of the rows that have a number;
// where these are more, too, the lowest and the highest of each of kMostPoints / 2 groups of neighbours, as they were,
// and {"means": [...]}, each group's: a line through extremes alone would be none through the middle.
nlohmann::ordered_json page_series(const std::vector<double>& column);

// Of all its rows: {"count", "sum", "low", "high", "first", "last", "from": [row, value], "to": [row, value]}, with the
// means of the first and last ten, and the first and last row that has it; null where none has.
nlohmann::ordered_json summary(const std::vector<double>& column);

// Where the time of a step goes: {"parts": [key], "columns": [{"from": step, "to": step, "total": s, "seconds": [s]}]},
// the parts of timing/train/total_step_time with the largest first, and means over up to 120 groups of neighbouring
// steps. No columns where no step has a time.
nlohmann::ordered_json time_columns(const RunRecord& run);

}  // namespace hexad::report
