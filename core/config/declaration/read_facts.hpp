// RunFacts of a configuration with its defaults.
#pragma once
#include "core/config/declaration/scope.hpp"
#include "core/config/declaration/selection.hpp"
#include "core/config/typed/run_facts.hpp"

namespace hexad::config {

// Facts that cannot be known for want of a value that is right are left at their defaults: what is wrong is reported by the
// checks of keys. A fact of a wrong kind is one more of `problems`.
RunFacts read_facts(const yaml::Node& root, const Selection& selection, const World& world,
                    const nlohmann::ordered_json& model, std::vector<Problem>& problems);

}  // namespace hexad::config
