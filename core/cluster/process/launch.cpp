#include "core/cluster/process/launch.hpp"

#include <charconv>
#include <cstdlib>

#include "lib/base/error.hpp"

namespace hexad::cluster {
namespace {

std::string text(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int number(const char* name, const char* launcher) {
  const std::string value = text(name);
  int result = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error == std::errc() && end == value.data() + value.size() && result >= 0) return result;
  fail(ErrorKind::config, "{} has started this process, and ${} is '{}', wanted a number from 0", launcher, name,
       value);
}

Launch checked(Launch launch) {
  if (launch.rank >= launch.world || launch.local_rank >= launch.local_world || launch.local_world > launch.world)
    fail(ErrorKind::config, "{} says rank {} of {} and local rank {} of {}: they do not fit each other",
         launch.launcher, launch.rank, launch.world, launch.local_rank, launch.local_world);
  return launch;
}

Launch of_torchrun() {
  const char* name = "torchrun";
  const std::string job = text("MASTER_ADDR") + "-" + text("MASTER_PORT") + "-" + text("TORCHELASTIC_RUN_ID") + "-" +
                          text("TORCHELASTIC_RESTART_COUNT");
  return {name,
          number("RANK", name),
          number("WORLD_SIZE", name),
          number("LOCAL_RANK", name),
          number("LOCAL_WORLD_SIZE", name),
          job};
}

// "4(x2),3" is 4, 4 and 3 tasks on three nodes.
int tasks_of_node(const std::string& spec, int node) {
  int at = 0;
  for (size_t begin = 0; begin < spec.size();) {
    size_t end = spec.find(',', begin);
    if (end == std::string::npos) end = spec.size();
    const std::string part = spec.substr(begin, end - begin);
    const int tasks = std::atoi(part.c_str());
    const size_t times = part.find("(x");
    at += times == std::string::npos ? 1 : std::atoi(part.c_str() + times + 2);
    if (node < at) return tasks;
    begin = end + 1;
  }
  return 0;
}

Launch of_srun() {
  const char* name = "srun";
  const int node = number("SLURM_NODEID", name);
  const std::string job = text("SLURM_JOB_ID") + "." + text("SLURM_STEP_ID") + "-" + text("SLURM_RESTART_COUNT");
  return {name,
          number("SLURM_PROCID", name),
          number("SLURM_STEP_NUM_TASKS", name),
          number("SLURM_LOCALID", name),
          tasks_of_node(text("SLURM_STEP_TASKS_PER_NODE"), node),
          job};
}

Launch of_mpirun() {
  const char* name = "mpirun";
  return {name,
          number("OMPI_COMM_WORLD_RANK", name),
          number("OMPI_COMM_WORLD_SIZE", name),
          number("OMPI_COMM_WORLD_LOCAL_RANK", name),
          number("OMPI_COMM_WORLD_LOCAL_SIZE", name),
          text("PMIX_NAMESPACE") + "-" + text("OMPI_MCA_orte_precondition_transports")};
}

}  // namespace

std::optional<Launch> launched() {
  std::optional<Launch> launch;
  if (std::getenv("OMPI_COMM_WORLD_SIZE")) {
    launch = of_mpirun();
  } else if (std::getenv("TORCHELASTIC_RUN_ID") || (std::getenv("RANK") && std::getenv("LOCAL_WORLD_SIZE"))) {
    launch = of_torchrun();
  } else if (std::getenv("SLURM_STEP_NUM_TASKS") && std::getenv("SLURM_PROCID")) {
    launch = of_srun();
  }
  if (!launch || launch->world <= 1) return std::nullopt;
  return checked(*launch);
}

}  // namespace hexad::cluster
