// The files of a model folder that are its tokenizer's and its chat templates'.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace hexad::text {

// Where further chat templates stand, NAME.jinja each.
inline constexpr const char* kTemplateFolder = "additional_chat_templates";

// Those that the folder has, by their paths in it: what a copy of the model needs for reading text as the model does,
// here and in transformers.
std::vector<std::string> tokenizer_files(const std::filesystem::path& folder);

}  // namespace hexad::text
