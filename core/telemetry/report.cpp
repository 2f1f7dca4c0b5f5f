#include "core/telemetry/report.hpp"

#include <algorithm>
#include <fstream>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/json.hpp"
#include "core/telemetry/report_page.hpp"

namespace hexad::telemetry {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kSampleSteps = 3, kSamplesPerStep = 4;

// Lines that are whole: the last one of a run that was killed may be cut.
Json read_lines(const fs::path& path, size_t most = SIZE_MAX) {
  Json lines = Json::array();
  std::ifstream in(path);
  for (std::string text; lines.size() < most && std::getline(in, text);) {
    Json line = try_parse_json<Json>(text);
    if (line.is_object()) lines.push_back(std::move(line));
  }
  return lines;
}

Json last_samples(const fs::path& run_dir, const Json& steps) {
  Json samples = Json::array();
  size_t shown = 0;
  for (auto step = steps.rbegin(); step != steps.rend() && shown < kSampleSteps; ++step) {
    const int64_t number = step->value("step", int64_t{0});
    const Json lines = read_lines(run_dir / fmt::format("train_data_step{}.jsonl", number), kSamplesPerStep);
    for (const Json& line : lines) {
      samples.push_back(
          {{"step", number}, {"reward", line.value("rewards", Json())}, {"content", line.value("content", Json(""))}});
    }
    shown += !lines.empty();
  }
  return samples;
}

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

void write_report(const fs::path& run_dir) {
  const Json steps = read_lines(run_dir / "metrics.jsonl");
  if (steps.empty())
    fail(ErrorKind::data, "report: {} has no steps. Wanted: the directory of a run (logger.log_dir/exp_NNN)",
         (run_dir / "metrics.jsonl").string());
  const Json data = {{"title", fs::absolute(run_dir).lexically_normal().parent_path().filename().string() + " / " +
                                   fs::absolute(run_dir).lexically_normal().filename().string()},
                     {"steps", steps},
                     {"samples", last_samples(run_dir, steps)},
                     {"config", fs::exists(run_dir / "config.yaml") ? read_file(run_dir / "config.yaml") : ""}};
  std::string page(kReportPage);
  page.replace(page.find(kReportDataMark), kReportDataMark.size(), script_safe(json_text(data)));
  const fs::path temporary = run_dir / "report.html.tmp";
  std::ofstream out(temporary);
  out << page;
  if (!out.flush()) fail(ErrorKind::data, "report: cannot write {}: is the disk full?", temporary.string());
  out.close();
  fs::rename(temporary, run_dir / "report.html");
}

}  // namespace hexad::telemetry
