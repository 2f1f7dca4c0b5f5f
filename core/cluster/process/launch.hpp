// What a launcher (torchrun, Slurm's srun, Open MPI's mpirun) says by the environment to a process that it has started;
// and how such processes find each other: the first one writes a file in a folder that all of them see.
#pragma once
#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

#include "core/cluster/worker/worker.hpp"

namespace hexad::cluster {

struct Launch {
  std::string launcher;  // "torchrun", "srun" or "mpirun"
  int rank = 0, world = 1;
  int local_rank = 0, local_world = 1;  // among those on this host
  std::string job;                      // the same in all processes of this start, and of no other that runs

  bool one_host() const { return local_world == world; }
};

// Nothing where no launcher is known, or it has started one process alone, which then starts its workers itself. Throws
// Error(config) if the variables of a launcher do not fit each other.
std::optional<Launch> launched();

// The first process's side: where it listens, and the run's secret, in a file of the folder `.meeting`, which is its
// user's alone; gone with the object.
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

// The others' side: waits for the file and for an answer from one of the addresses in it. A file that anybody else
// could have written is not believed (lib/base/file/private_file.hpp). Throws Error(worker) when the time is over,
// saying what it lacked; Interrupted a few seconds after `interrupted` (null: never) was above 0.
Bootstrap meet(const Launch& launch, const std::filesystem::path& folder, double timeout_s,
               const std::atomic<int>* interrupted = nullptr);

}  // namespace hexad::cluster
