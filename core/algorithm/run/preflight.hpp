// What a run would be refused for after its configuration has been found valid: found before anything starts.
#pragma once
#include <vector>

#include "core/config/check.hpp"

namespace hexad::algorithm {

// Names of environments and their arguments, reward programs that are not there, the learning-rate schedule, a model
// directory that is none; a notice of a model of the Hub that is not in the cache here. `root`: as load_with_defaults()
// leaves it, without an error of config::check's. Starts nothing; plugins, which `catalog` knows, are left to the run.
std::vector<config::Problem> preflight(const yaml::Node& root, const config::RunFacts& facts,
                                       const config::Catalog& catalog);

// Whether the run loads the plugin that its configuration has chosen.
bool is_used(const config::Loaded& loaded, const config::Chosen& chosen);

// Before a run: throws Error(config) with all that preflight() finds, notices too. Without a launcher every rank runs
// on this host: several nodes are told by a notice, and refused where ranks want GPUs.
void require_ready(config::Resolved& resolved, bool launched);

}  // namespace hexad::algorithm
