// One worker process: receives commands from the controller and carries them out on the plugins it hosts.
#pragma once
#include <string>

namespace hexad::cluster {

// What a worker reads from its standard input: where the controller listens, the run's secret, and its rank.
struct Bootstrap {
  std::string endpoint;
  std::string server_key;
  int rank = 0;
  // Of a rank that a launcher has started: its place on its host, and where the first process is. -1: all ranks are on
  // this host, and the controller ends them.
  int local_rank = -1, local_world = 0;
  std::string controller;
};
std::string to_text(const Bootstrap& bootstrap);
Bootstrap bootstrap_from_text(const std::string& text);  // throws Error(worker)

// Serves until `shutdown`. A rank of a launcher ends with 4, and says so, when the controller's connection is lost. A
// process of its own ends with _exit once plugins, process groups and logs are closed, so that no destructor of a
// device library runs late; on a thread it returns.
void run_worker(const Bootstrap& bootstrap, bool own_process);

}  // namespace hexad::cluster
