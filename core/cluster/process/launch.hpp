// What a launcher (torchrun, Slurm's srun, Open MPI's mpirun) says by the environment to a process that it has started.
#pragma once
#include <optional>
#include <string>

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

}  // namespace hexad::cluster
