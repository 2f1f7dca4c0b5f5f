// What YAML 1.1 forbids and yaml-cpp lets pass.
#pragma once
#include <string>

namespace hexad::config {

// Throws Error(config) with file:line:column for a tab where indentation belongs, control characters, and bytes that
// are not UTF-8.
void check_strict_yaml(const std::string& text, const std::string& name);

}  // namespace hexad::config
