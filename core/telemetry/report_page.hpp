// The page of report.html: core/telemetry/report/, put together by cmake/HexadReportPage.cmake.
#pragma once
#include <string_view>

namespace hexad::telemetry {

// Where write_page puts the JSON object {"runs": [...]} (report_data.hpp).
inline constexpr std::string_view kReportDataMark = "@REPORT_DATA@";
extern const std::string_view kReportPage;

}  // namespace hexad::telemetry
