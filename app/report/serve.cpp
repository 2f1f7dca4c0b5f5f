#include "app/report/serve.hpp"

#include <fmt/format.h>

#include "app/report/data.hpp"
#include "app/report/report.hpp"
#include "app/report/resumption.hpp"
#include "app/report/sample_files.hpp"
#include "lib/base/json.hpp"

namespace hexad::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// "exp_001/metrics.jsonl 4711 1700000000.", another one when the file is.
std::string state_of(const fs::path& file) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(file, error);
  const auto changed = fs::last_write_time(file, error);
  const fs::path shown = file.parent_path().filename() / file.filename();
  if (error) return shown.string() + ".";
  return fmt::format("{} {} {}.", shown.string(), bytes, changed.time_since_epoch().count());
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return safe;
}

std::string waiting_page(const std::string& why) {
  return fmt::format(
      "<!doctype html><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">"
      "<meta http-equiv=\"refresh\" content=\"2\"><title>Hexad</title>"
      "<p style=\"font-family:system-ui\">Waiting for the first step. {}</p>",
      escaped(why));
}

}  // namespace

http::Answer LiveReport::operator()(const http::Request& request) const {
  if (request.path == "/") return page();
  if (request.path == "/favicon.ico") return {.status = 204};
  const bool metrics = request.path == "/metrics.json";
  if (!metrics && request.path != "/samples.json") return {.status = 404, .body = "no such page; / is the report\n"};
  try {
    const std::string now = version(!metrics);
    if (request.known == now) return {.status = 304, .version = now};
    const std::vector<RunRecord> runs = read_named(run_dirs_);
    Json data = {{"runs", Json::array()}};
    for (const RunRecord& run : runs)
      data["runs"].push_back(metrics ? metrics_data(run) : samples_data(run, runs.size()));
    return {.type = "application/json", .body = json_text(data), .version = now};
  } catch (const std::exception& error) {  // a file that has gone meanwhile is no Error, and another time it is there
    return {.status = 503, .body = std::string(error.what()) + "\n"};
  }
}

// A step's samples are written beside its line of metrics, and may be there long after it.
std::string LiveReport::version(bool with_samples) const {
  std::string states;
  for (const fs::path& each : run_dirs_) {
    const fs::path newest = newest_run(each);
    states += state_of(newest / "metrics.jsonl");
    if (const auto samples = with_samples ? newest_samples(newest) : std::nullopt) states += state_of(*samples);
  }
  return fmt::format("{:x}", std::hash<std::string>{}(states));
}

http::Answer LiveReport::page() const {
  constexpr const char* kHtml = "text/html; charset=utf-8";
  try {
    return {.type = kHtml, .body = live_page(read_named(run_dirs_))};
  } catch (const std::exception& error) {
    return {.type = kHtml, .body = waiting_page(error.what())};
  }
}

}  // namespace hexad::report
