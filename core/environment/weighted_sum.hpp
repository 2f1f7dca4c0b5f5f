// Several rewards in one: `env.<name>.rewards`.
#pragma once
#include <functional>

#include "core/environment/environment.hpp"

namespace hexad::environment {

// A list of parts: {name, weight: 1, ...}, the other keys as those of an env.<name> of their own (a built-in of that
// name or `type`, a program, a plugin), or `schedule: cosine` for a CosineLength. The reward is the sum of weight *
// part, without those that do not apply to a sample. One that a part with a weight could not score, or to which none of
// them applies, is invalid; a part of weight 0 is only reported. Each part is a component (unweighted); components of a
// part are metrics, reward/<part>/<component>. One part may reply; every part scores every turn, and keeps its own
// state. `make_part` makes what the other keys say; where it only checks them and gives null, score() may not be
// called. Throws Error(config); score() too, where two parts reply to one response.
using MakePart =
    std::function<std::unique_ptr<Environment>(const std::string& name, const nlohmann::ordered_json& section)>;
std::unique_ptr<Environment> make_weighted_sum(const std::string& name, const nlohmann::ordered_json& section,
                                               const MakePart& make_part);

}  // namespace hexad::environment
