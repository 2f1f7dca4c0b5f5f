// Keys that are written in another place than where they are read.
#pragma once
#include <vector>

#include "core/config/declaration/declaration.hpp"
#include "core/config/problem.hpp"
#include "core/config/schema/schema.hpp"
#include "lib/yaml/node.hpp"

namespace hexad::config {

// Moves what stands under an older name (Key::renamed_from) to the key's own, with a notice each; both at once are an
// error.
std::vector<Problem> move_renamed(yaml::Node& root, const Schema& schema);

// Moves keys of an environment plugin that stand beside its plugin_config into it: create looks there first, and would
// find the default.
void move_beside(yaml::Node& root, const std::string& block, const Declaration& declaration);

// Moves the keys of a map that stands for a section (Key::stands_for) into the section, unless they are written there.
// What is left in the map is a conflict or no key at all: check_standing() says so.
void move_standing(yaml::Node& root, const Schema& schema);
std::vector<Problem> check_standing(const yaml::Node& root, const Schema& schema);

}  // namespace hexad::config
