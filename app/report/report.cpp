#include "app/report/report.hpp"

#include <string_view>

#include "app/report/comparison.hpp"
#include "app/report/data.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"

namespace hexad::report {

extern const std::string_view kReportPage;  // app/report/page/, put together by cmake/HexadReportPage.cmake

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Where the page has the JSON object {"runs": [...]} (data.hpp).
constexpr std::string_view kReportDataMark = "@REPORT_DATA@";

// JSON inside <script>: nothing in it may end the element or open a comment.
std::string script_safe(const std::string& json) {
  std::string safe;
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

void write(const std::string& page, const fs::path& to, const fs::path& named) {
  if (const std::string reason = why_not_written(to, page, 0600); !reason.empty())
    fail(ErrorKind::data, "report: cannot write {}: {}", named.string(), reason);
}

// Readers find the old page or the new one, never half of one.
void replace(const std::string& page, const fs::path& file) {
  const fs::path temporary = file.string() + ".tmp";
  std::error_code error;
  try {
    write(page, temporary, file);
  } catch (const Error&) {
    fs::remove(temporary, error);
    throw;
  }
  fs::rename(temporary, file, error);
  if (!error) return;
  const std::string reason = error.message();
  fs::remove(temporary, error);
  fail(ErrorKind::data, "report: cannot write {}: {}", file.string(), reason);
}

}  // namespace

void write_page(const std::vector<RunRecord>& runs, const fs::path& file) {
  Json data = {{"runs", Json::array()}, {"compared", kCompared}};
  for (const RunRecord& run : runs) data["runs"].push_back(report_data(run, runs.size()));
  std::string page(kReportPage);
  page.replace(page.find(kReportDataMark), kReportDataMark.size(), script_safe(json_text(data)));
  // A device or a pipe, also by a link, is written, not replaced by a file; a link to a file is refused.
  std::error_code error;
  const fs::file_type type = fs::symlink_status(file, error).type();
  if (type == fs::file_type::regular || type == fs::file_type::not_found)
    replace(page, file);
  else
    write(page, file, file);
}

void write_report(const fs::path& run_dir) { write_page({read_run(run_dir)}, run_dir / "report.html"); }

}  // namespace hexad::report
