// The page of report.html: app/report/page/, put together by cmake/HexadReportPage.cmake.
#pragma once
#include <string_view>

namespace hexad::report {

// Where write_page puts the JSON object {"runs": [...]} (data.hpp).
inline constexpr std::string_view kReportDataMark = "@REPORT_DATA@";
extern const std::string_view kReportPage;

}  // namespace hexad::report
