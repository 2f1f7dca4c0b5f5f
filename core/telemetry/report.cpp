#include "core/telemetry/report.hpp"

#include <fstream>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/telemetry/comparison.hpp"
#include "core/telemetry/report_data.hpp"
#include "core/telemetry/report_page.hpp"

namespace hexad::telemetry {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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

}  // namespace

void write_page(const std::vector<RunRecord>& runs, const fs::path& file) {
  Json data = {{"runs", Json::array()}, {"compared", kCompared}};
  for (const RunRecord& run : runs) data["runs"].push_back(report_data(run, runs.size()));
  std::string page(kReportPage);
  page.replace(page.find(kReportDataMark), kReportDataMark.size(), script_safe(json_text(data)));
  const fs::path temporary = file.string() + ".tmp";
  std::ofstream out(temporary);
  out << page;
  if (!out.flush()) fail(ErrorKind::data, "report: cannot write {}: is the disk full?", temporary.string());
  out.close();
  fs::rename(temporary, file);
}

void write_report(const fs::path& run_dir) { write_page({read_run(run_dir)}, run_dir / "report.html"); }

}  // namespace hexad::telemetry
