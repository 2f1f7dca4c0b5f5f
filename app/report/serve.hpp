// Reports of runs that go on, for a browser: hexad report --serve.
#pragma once
#include <filesystem>
#include <vector>

#include "lib/http/local/local_server.hpp"

namespace hexad::report {

// Answers for the page of these runs: "/" is the page, "/metrics.json" and "/samples.json" what it asks for afterwards
// ({"runs": [...]}, data.hpp). Each answer is of what the folders hold at that moment, and 304 where the browser has it
// already. A run of a logger.log_dir may go on in a newer folder. Before the first step there is a page that waits.
// What cannot be read at that moment is 503 with the reason.
class LiveReport {
 public:
  explicit LiveReport(std::vector<std::filesystem::path> run_dirs) : run_dirs_(std::move(run_dirs)) {}
  http::Answer operator()(const http::Request& request) const;

 private:
  std::string version(bool with_samples) const;
  http::Answer page() const;

  std::vector<std::filesystem::path> run_dirs_;
};

}  // namespace hexad::report
