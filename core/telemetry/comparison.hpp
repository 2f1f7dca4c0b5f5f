// Several runs next to each other as text.
#pragma once
#include <string>
#include <vector>

#include "core/telemetry/run_record.hpp"

namespace hexad::telemetry {

// The runs by number, then a table of what they came to (means of the last 10 steps; of validation the last value),
// then the settings that differ. No line is wider than 80 columns, but for the directories: they are to be copied.
std::string comparison(const std::vector<RunRecord>& runs);

}  // namespace hexad::telemetry
