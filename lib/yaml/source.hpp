// The interpolation that gives a value which came from the environment, put together while the value is.
#pragma once
#include <string>
#include <vector>

#include "lib/yaml/node.hpp"

namespace hexad::yaml {

// Whether it, or anything in it, came from the environment.
bool has_source(const Node& value);

// `${name:arguments}` that gives what the call gave. Where an argument cannot be written, kMasked.
std::string call_source(const std::string& name, const std::vector<Node>& arguments);

// The text of these parts, with an interpolation for each that has a source.
std::string text_source(const std::vector<Node>& parts);

}  // namespace hexad::yaml
