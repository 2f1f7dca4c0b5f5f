#include "app/report/serve.hpp"

#include <fmt/format.h>

#include "app/report/data.hpp"
#include "app/report/report.hpp"
#include "app/report/resumption.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

namespace hexad::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<RunRecord> read_all(const std::vector<fs::path>& run_dirs) {
  std::vector<RunRecord> runs;
  for (const fs::path& each : run_dirs) runs.push_back(read_resumed(each));
  return without_continued(std::move(runs));
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
  const std::string now = version();
  if (request.known == now) return {.status = 304, .version = now};
  try {
    const std::vector<RunRecord> runs = read_all(run_dirs_);
    Json data = {{"runs", Json::array()}};
    for (const RunRecord& run : runs)
      data["runs"].push_back(metrics ? metrics_data(run) : samples_data(run, runs.size()));
    return {.type = "application/json", .body = json_text(data), .version = now};
  } catch (const Error& error) {
    return {.status = 503, .body = std::string(error.what()) + "\n"};
  }
}

// A line of metrics is written when all of its step is there.
std::string LiveReport::version() const {
  std::string sizes;
  for (const fs::path& each : run_dirs_) {
    const fs::path newest = newest_run(each);
    std::error_code error;
    const uintmax_t bytes = fs::file_size(newest / "metrics.jsonl", error);
    sizes += fmt::format("{}-{}.", newest.filename().string(), error ? 0 : bytes);
  }
  return fmt::format("{:x}", std::hash<std::string>{}(sizes));
}

http::Answer LiveReport::page() const {
  constexpr const char* kHtml = "text/html; charset=utf-8";
  try {
    return {.type = kHtml, .body = live_page(read_all(run_dirs_))};
  } catch (const Error& error) {
    return {.type = kHtml, .body = waiting_page(error.what())};
  }
}

}  // namespace hexad::report
