// What YAML 1.1 forbids and yaml-cpp lets pass.
#pragma once
#include <string>

namespace hexad::yaml {

// Throws Error(config) with file:line:column for a tab outside quotations, comments and block texts, a quotation that
// does not end, a missing element in a flow list, and control characters.
void check_strict_yaml(const std::string& text, const std::string& name);

}  // namespace hexad::yaml
