// In what a checkpoint and a run that would go on from it differ.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hexad::checkpoint {

// "a.b: saved 1, now 2" for each, by its path of keys; a key that one side lacks is null there.
std::vector<std::string> differences(const nlohmann::ordered_json& saved, const nlohmann::ordered_json& now);

}  // namespace hexad::checkpoint
