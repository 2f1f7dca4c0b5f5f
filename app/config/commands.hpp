// `hexad config check|show`: what the command line prints and returns.
#pragma once
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "core/config/check.hpp"

namespace hexad::config {

// Prints every error and notice of a configuration, a line each, then a verdict; with `json` one object {"valid",
// "errors", "notices"}. A valid configuration of a large model gets a line about the memory of a rank that trains, and
// the object "bytes" {"parameters", "gradients", "optimizer"} wherever that is known. Returns the exit code: 0 valid, 2
// not.
int print_problems(const std::vector<Problem>& problems, const std::filesystem::path& path, bool json,
                   std::ostream& out, const std::optional<BytesFact>& bytes = std::nullopt);

// Prints the resolved configuration as YAML (config/origin.hpp), or with `json` as one JSON object; with `origins` each
// value with where it comes from, or with `json` a list of them. An invalid one is listed on `errors` and returns 2.
int config_show(const std::filesystem::path& path, const std::vector<std::string>& overrides, bool json,
                std::ostream& out, std::ostream& errors, bool origins = false, const Compat& compat = {});

}  // namespace hexad::config
