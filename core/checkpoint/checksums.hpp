// What the files of a checkpoint were when they were written, and whether they still are.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/tensorfile/growing_sums.hpp"

namespace hexad::checkpoint {

struct FileSum {
  uint64_t bytes = 0;
  std::string sha256;  // empty: not taken
};
// By path below step_N: "policy/weights/config.json".
using FileSums = std::map<std::string, FileSum>;

bool has_checksums(const FileSums& sums);
// {"policy/weights/config.json": {"bytes": 730, "sha256": "..."}}, and back.
nlohmann::ordered_json to_json(const FileSums& sums);
FileSums sums_from(const nlohmann::ordered_json& json);

// Of all files below `directory`, with their SHA-256 or without; on threads that give way to all others. `growing`: of
// the folders' files as they were written, null: of none. Throws Error(data) where one cannot be read.
FileSums sums_of(const std::filesystem::path& directory, bool sha256, tensorfile::GrowingSums* growing = nullptr);

// In what the files below `directory` are not those of `saved`: "PATH is missing", a line each. Files that were not
// saved do not count, but for weights in folders of those that were: readers would take them.
std::vector<std::string> damage(const std::filesystem::path& directory, const FileSums& saved);

}  // namespace hexad::checkpoint
