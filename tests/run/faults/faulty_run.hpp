// An asynchronous GRPO run over servers of an engine that fail by a schedule, and what it leaves behind.
#pragma once
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/run/first_party.hpp"

namespace faults {

using Json = nlohmann::ordered_json;

struct RunSize {
  std::string engine = "vllm";
  int steps = 1, prompts = 4, generations = 4, servers = 3;
  bool attached = false;  // the servers are not the run's own: what is killed stays away
  double timeout_s = toy::kPatienceS;
  std::string always = {};             // a point and a kind: the fault of every server at every occasion
  std::vector<std::string> more = {};  // overrides

  int64_t groups() const { return int64_t{1} * steps * prompts; }
  int64_t samples() const { return groups() * generations; }
};

class FaultyRun {
 public:
  // Trains on disks of its own, where that is possible, with servers that fail so.
  FaultyRun(const RunSize& size, const Json& schedule);

  // Exit 0; every group trained, none dropped; every sample of every step is one that a server has drawn to its end,
  // each request's once.
  void check_samples() const;
  // It ended with an error that says so, and trained on nothing.
  void check_refused(const std::string& words) const;
  // No step waited beyond its deadlines.
  void check_times() const;
  // Every fault of the schedule has come, and the log says of each what was done about it.
  void check_faults() const;
  // No process, no unfinished file.
  void check_nothing_left() const;

  std::string worker_log() const;
  // Whether disks can be mounted here, as root or in a user namespace of our own: else there is no disk_full.
  static bool can_fill_disks();

 private:
  bool has_own_disks() const;  // servers that it does not start could not see them
  std::vector<std::string> command() const;
  std::map<std::string, std::string> environment() const;  // of the servers
  std::vector<std::string> arguments(const std::vector<std::string>& urls) const;
  std::vector<Json> lines_of(const toy::fs::path& file) const;

  toy::TempDir dir_;
  RunSize size_;
  Json schedule_;
  toy::Ended ended_;
};

}  // namespace faults
