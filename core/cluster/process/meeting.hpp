// How processes that a launcher has started find each other: the first one writes a file in a folder that all of them
// see.
#pragma once
#include <filesystem>

#include "core/cluster/process/launch.hpp"
#include "core/cluster/worker/worker.hpp"

namespace hexad::cluster {

// The first process's side: where it listens, and the run's secret. Readable by its user alone; gone with the object.
class Meeting {
 public:
  // `endpoint`: of a socket on all interfaces where there are several hosts. Throws Error(worker) if it cannot be
  // written.
  Meeting(const Launch& launch, const std::filesystem::path& folder, const std::string& endpoint,
          const std::string& server_key);
  ~Meeting();
  Meeting(const Meeting&) = delete;

 private:
  std::filesystem::path file_;
};

// The others' side: waits for the file and for an answer from one of the addresses in it. Throws Error(worker) when the
// time is over, saying which it lacked.
Bootstrap meet(const Launch& launch, const std::filesystem::path& folder, double timeout_s);

}  // namespace hexad::cluster
