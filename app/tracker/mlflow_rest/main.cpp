// hexad-mlflow: reads the lines that Hexad writes to a tracker (docs/trackers.md), and sends the run to a server of
// MLflow. A program of its own, so that `hexad` has no HTTP library to find at its start.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "app/tracker/mlflow_rest/run.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"

namespace {

// Until the end of the run. One without a last line was killed. What is no event that is known is none of ours.
void follow(std::istream& lines) {
  using hexad::mlflow::Json;
  std::optional<hexad::mlflow::Run> run;
  std::optional<std::string> status;
  for (std::string line; std::getline(lines, line);) {
    const Json event = hexad::parse_json<Json>(line);
    const std::string kind = event.at("event");
    if (kind == "start") {
      const char* uri = std::getenv("MLFLOW_TRACKING_URI");
      run.emplace(event, uri ? uri : "", hexad::mlflow::Access::of_environment());
    }
    if (!run) continue;
    if (kind == "step") run->step(event);
    if (kind == "samples") run->samples(event);
    if (kind == "artifact") run->artifact(event);
    if (kind == "end") status = event.at("status").get<std::string>();
  }
  if (run) run->end(status.value_or("crashed"));
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    follow(std::cin);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", hexad::one_line(error.what()).c_str());
    return 1;
  }
}
