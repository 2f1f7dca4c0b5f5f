// What a run would be refused for after its configuration has been found valid: found before anything starts.
#pragma once
#include <string>
#include <vector>

#include "core/config/check.hpp"

namespace hexad::algorithm {

// Names of environments and their arguments, reward programs that are not there, the learning-rate schedule.
// `root`: as load_with_defaults() leaves it, without an error of config::check's. Starts nothing; plugins, which
// `catalog` knows, are left to others.
std::vector<config::Problem> preflight(const yaml::Node& root, const config::RunFacts& facts,
                                       const config::Catalog& catalog);

// The sentence about a metric that is none of those which validation tells.
std::string unknown_metric(const std::string& name, const std::vector<std::string>& known);

// Whether the run loads the plugin that its configuration has chosen.
bool is_used(const config::Loaded& loaded, const config::Chosen& chosen);

}  // namespace hexad::algorithm
