// The message that makes a worker of a process: which plugins it hosts, on which device, with whom.
#pragma once
#include <string>
#include <vector>

#include "core/cluster/process/worker_group.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/config/typed/run_facts.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::cluster {

using protocol::Roles;

// What every worker gets alike: the sections that plugins read, with all their defaults, and where each value was
// written. Arguments as of start_workers().
protocol::Start start_of_all(const yaml::Node& root, const config::RunConfig& run, const Roles& roles,
                             const std::string& model_dir, const std::string& tokenizer_dir);

// Sends `start` to every worker and returns their replies in rank order. `root` is the resolved configuration: plugins
// read its sections and its places in files; `model_dir` replaces policy.model_name with a local directory;
// `tokenizer_dir` serves plugins that ask the host for text, and may be empty.
std::vector<protocol::Start::Reply> start_workers(WorkerGroup& workers, const yaml::Node& root,
                                                  const config::RunConfig& run, const Roles& roles,
                                                  const std::string& model_dir, const std::string& tokenizer_dir);
// The same where generator and trainers may have ranks of their own.
std::vector<protocol::Start::Reply> start_workers(WorkerGroup& workers, const Placement& placement,
                                                  const yaml::Node& root, const config::RunConfig& run,
                                                  const Roles& roles, const std::string& model_dir,
                                                  const std::string& tokenizer_dir);

// A manifest's facts against what the backend says of itself once it is there. `started`: the workers' replies to
// `start`, in rank order. Batches were cut, and the configuration checked, by the facts: the first that describe()
// contradicts is an Error(plugin), which names plugin, rank, fact, and both values.
void check_facts(const std::vector<protocol::Start::Reply>& started, const RankRange& trainers,
                 const config::RunFacts& facts);

}  // namespace hexad::cluster
