// Configurations that are installed with the program, in share/hexad/configs, by name: "quickstart", "grpo_math_1B" of
// recipes/. `folder`: that one.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/yaml/node.hpp"

namespace hexad::shipped {

// Where they lie beside this program.
std::filesystem::path folder();

// Their names, in order: of the files, and of those in recipes/, without ".yaml".
std::vector<std::string> names(const std::filesystem::path& folder);

// The file that `path` means, for which `written` was written: itself where it is there, or where that is more than a
// word (a folder, an extension), else the configuration of that name. Throws Error(config) that lists the names where
// there is none.
std::filesystem::path file_of(const std::filesystem::path& path, const std::filesystem::path& written,
                              const std::filesystem::path& folder);

// As yaml::read_file. In a file of `folder`, texts that name something below it ("configs/quickstart_model") become
// absolute: they count from the checkout's root, where nobody is who has installed the program.
yaml::Node read_file(const std::filesystem::path& path, const std::filesystem::path& folder);

}  // namespace hexad::shipped
