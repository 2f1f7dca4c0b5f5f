// The name of a file that is only appended to until it is whole, between those who write and those who follow it.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace hexad::tensorfile {

constexpr std::string_view kGrowing = ".growing";

// "folder/.NAME.growing" of "folder/NAME".
inline std::filesystem::path growing_name(const std::filesystem::path& file) {
  return file.parent_path() / ("." + file.filename().string() + std::string(kGrowing));
}

// And back; nothing for another name.
inline std::optional<std::filesystem::path> grown_name(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  if (!name.starts_with('.') || !name.ends_with(kGrowing) || name.size() <= 1 + kGrowing.size()) return std::nullopt;
  return file.parent_path() / name.substr(1, name.size() - 1 - kGrowing.size());
}

}  // namespace hexad::tensorfile
