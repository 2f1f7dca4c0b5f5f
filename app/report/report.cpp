#include "app/report/report.hpp"

#include <string_view>

#include "app/report/comparison.hpp"
#include "app/report/data.hpp"
#include "app/report/resumption.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"

namespace hexad::report {

// app/report/page/ and docs/metrics.md, put together by cmake/HexadReportPage.cmake.
extern const std::string_view kReportPage, kLiveScript;

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

// Puts `text` where the page has the mark.
void fill(std::string& page, std::string_view mark, std::string_view text) {
  page.replace(page.find(mark), mark.size(), text);
}

std::string page_of(const std::vector<RunRecord>& runs, std::string_view connects, std::string_view live) {
  Json data = {{"runs", Json::array()}, {"compared", kCompared}};
  for (const RunRecord& run : runs) {
    data["runs"].push_back(metrics_data(run));
    data["runs"].back().update(samples_data(run, runs.size()));
  }
  std::string page(kReportPage);
  fill(page, "@CONNECT@", connects);
  fill(page, "@LIVE@", live);
  fill(page, "@REPORT_DATA@", script_safe(json_text(data)));
  return page;
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
  const std::string page = page_of(runs, "", "");
  // A device or a pipe, also by a link, is written, not replaced by a file; a link to a file is refused.
  std::error_code error;
  const fs::file_type type = fs::symlink_status(file, error).type();
  if (type == fs::file_type::regular || type == fs::file_type::not_found)
    replace(page, file);
  else
    write(page, file, file);
}

void write_report(const fs::path& run_dir) { write_page({read_resumed(run_dir)}, run_dir / "report.html"); }

std::string live_page(const std::vector<RunRecord>& runs) { return page_of(runs, "connect-src 'self'; ", kLiveScript); }

}  // namespace hexad::report
