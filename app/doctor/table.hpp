// The findings as a page for people, and as JSON.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "app/doctor/build.hpp"
#include "app/doctor/finding.hpp"

namespace hexad::doctor {

// A line each: level, topic, what is here; below a note or a problem, how to mend it; at the end how many there are.
// Texts of strangers stand there as lib/base/said/printable.hpp shows them. With `colours` the levels have ANSI's.
std::string table(const Findings& findings, bool colours);

// {"version", "commit", "problems", "notes", "findings": [{"topic", "level", "text", "mend"}]}; "commit" and "mend" are
// "" where there is none.
nlohmann::ordered_json json_of(const Build& build, const Findings& findings);

size_t count_of(const Findings& findings, Level level);

}  // namespace hexad::doctor
