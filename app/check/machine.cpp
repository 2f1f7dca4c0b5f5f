// Ranks, and what this machine has for them.
#include <cstdlib>

#include "app/check/findings.hpp"
#include "app/doctor/build.hpp"
#include "app/doctor/nvml.hpp"
#include "app/inference/open_files.hpp"
#include "core/cluster/placement.hpp"
#include "lib/base/error.hpp"

namespace hexad::cli {
namespace {

// Cards that CUDA shows to a process: those of the driver, or as many as CUDA_VISIBLE_DEVICES names.
int64_t visible_cards() {
  const auto cards = static_cast<int64_t>(doctor::ask_driver().cards.size());
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!list) return cards;
  const std::string named = list;
  if (named.empty() || named.starts_with('-')) return 0;
  return std::min<int64_t>(cards, 1 + std::ranges::count(named, ','));
}

// Where `auto` comes to CPUs: rules that speak of cluster.device.
void check_as_on_cpus(StartFindings& found) {
  config::Loaded there = found.loaded;
  there.root.set("cluster.device", yaml::Node(std::string("cpu")));
  for (const config::Problem& problem : config::check(there))
    if (problem.is_error()) found.not_here(problem.key, problem.message + " (auto comes to that here)");
}

void check_device(StartFindings& found) {
  const config::ClusterConfig& cluster = found.run.cluster;
  const int64_t ranks = found.start.in_process ? 1 : cluster.gpus_per_node;
  const bool has_cuda = !doctor::this_build("").cuda.empty();
  // One rank takes a card or none; the driver is asked where its answer matters.
  const bool asks = has_cuda && cluster.device != "cpu" && (cluster.device != "auto" || ranks > 1);
  const int64_t cards = asks ? visible_cards() : 0;
  if (cluster.device == "auto" && cards == 0 && (asks || !has_cuda)) check_as_on_cpus(found);
  const std::string why = cluster::device_problem(cluster.device, ranks, has_cuda, cards);
  if (why.empty()) return;
  // A login node has none, and runs nothing.
  if (has_cuda && cards == 0)
    found.not_here("cluster.device", why);
  else
    found.error("cluster.device", why);
}

// Several nodes without a launcher are several processes of this host each.
void check_nodes(StartFindings& found) {
  const config::ClusterConfig& cluster = found.run.cluster;
  if (found.start.launched || found.start.in_process || cluster.num_nodes <= 1) return;
  const std::string key = "cluster.num_nodes";
  const std::string here =
      fmt::format("{} nodes, and no launcher has started this process: all {} ranks would run on this host",
                  cluster.num_nodes, cluster.num_nodes * cluster.gpus_per_node);
  if (cluster.device == "cuda")
    found.not_here(key, fmt::format("{}. Start it by srun, mpirun or torchrun, a process for each rank, as `srun -N {} "
                                    "--ntasks-per-node {} hexad train ...` (docs/launch.md); or set "
                                    "cluster.num_nodes=1",
                                    here, cluster.num_nodes, cluster.gpus_per_node));
  else if (found.start.is_here)
    found.notice(key, fmt::format("{}; several hosts need srun, mpirun or torchrun (docs/launch.md)", here));
}

void check_open_files(StartFindings& found) {
  try {
    const config::ClusterConfig& cluster = found.run.cluster;
    const int64_t ranks = found.start.in_process ? 1 : cluster.num_nodes * cluster.gpus_per_node;
    inference::require_open_files(static_cast<int>(ranks));
  } catch (const Error& error) {
    found.not_here("cluster.gpus_per_node", error.what());
  }
}

}  // namespace

void check_machine(StartFindings& found) {
  check_device(found);
  check_nodes(found);
  check_open_files(found);
}

}  // namespace hexad::cli
