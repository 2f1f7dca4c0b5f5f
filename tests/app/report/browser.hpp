// What headless Chromium makes of a page (browser.py).
#pragma once
#include "tests/support/toy/train.hpp"

namespace browser {

using plugin_test::Json;

// Until when a chart is drawn, whatever the run has.
inline const std::string kDrawn = "document.querySelectorAll('#time svg, #charts path').length";

inline std::string url_of(const std::filesystem::path& page) { return "file://" + page.string(); }

// A visit of browser.py with one stage: `read` are expressions of JavaScript by name.
inline Json visit(const std::string& url, const Json& read, const Json& more = Json::object()) {
  Json made = {{"page", url}, {"stages", {{{"until", kDrawn}, {"read", read}}}}};
  made.update(more);
  return made;
}

inline toy::Program start(const toy::TempDir& dir, const Json& visits) {
  const std::string script = (toy::source_dir() / "tests/app/report/browser.py").string();
  return toy::Program({"python3", "-B", script}, {dir.write("visits.json", visits.dump()).string()}, "");
}

// A line of browser.py for each stage of each visit. The page wrote nothing on its console, and asked for nothing.
inline std::vector<Json> saw(const toy::TempDir& dir, const Json& visits) {
  const toy::Ended ended = start(dir, visits).wait();
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  std::vector<Json> stages;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) {
    stages.push_back(Json::parse(line));
    CHECK_MESSAGE(stages.back().at("console").empty(), line);
    CHECK_MESSAGE(stages.back().at("requests").empty(), line);
  }
  return stages;
}

// The elements after the page's script ran.
inline std::string elements(const toy::TempDir& dir, const std::filesystem::path& page) {
  return saw(dir, Json::array({visit(url_of(page), {{"html", "document.documentElement.outerHTML"}})}))
      .at(0)
      .at("read")
      .at("html");
}

}  // namespace browser
