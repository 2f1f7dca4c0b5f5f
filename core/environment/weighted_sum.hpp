// Several rewards in one: `env.<name>.rewards`.
#pragma once
#include "core/environment/make.hpp"

namespace hexad::environment {

// A list of parts: {name, weight: 1, ...}, the other keys as those of an env.<name> of their own (a built-in of that name
// or `type`, a program, a plugin), or `schedule: cosine` for a CosineLength. The reward is the sum of weight * part. A
// sample that a part could not score is invalid. Each part is a component (unweighted); components of a part are
// metrics, reward/<part>/<component>. One part may reply; every part scores every turn, and keeps its own state. Throws
// Error(config); score() too, where two parts reply to one response.
std::unique_ptr<Environment> make_weighted_sum(const std::string& name, const nlohmann::ordered_json& section,
                                               const Services& services);

}  // namespace hexad::environment
