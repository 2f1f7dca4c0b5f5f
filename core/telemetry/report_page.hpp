// The page of report.html: markup, style and drawing code, with one place for the run's data.
#pragma once
#include <string_view>

namespace hexad::telemetry {

// Where write_report puts the JSON object {"title", "steps": [...], "samples": [...], "config": text}.
inline constexpr std::string_view kReportDataMark = "@REPORT_DATA@";
extern const std::string_view kReportPage;

}  // namespace hexad::telemetry
