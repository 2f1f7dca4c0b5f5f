// What a run has left in its logs, step by step.
#pragma once
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/run/first_party.hpp"

namespace first_party {

inline std::vector<nlohmann::json> lines_of(const toy::fs::path& file) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// The metrics of every step, and beside them its samples: `samples`, the tokens of each, and `prompts`, their texts.
inline std::vector<nlohmann::json> steps_of(const toy::TempDir& dir, const std::string& experiment = "exp_001") {
  using Json = nlohmann::json;
  const toy::fs::path logs = dir / "logs" / experiment;
  std::vector<Json> found;
  for (Json& line : lines_of(logs / "metrics.jsonl")) {
    if (!line.contains("train/reward")) continue;
    line["samples"] = Json::array(), line["prompts"] = Json::array();
    for (const Json& sample : lines_of(logs / fmt::format("train_data_step{}.jsonl", line.at("step").get<int>()))) {
      line["samples"].push_back(sample.at("token_ids"));
      const std::string content = sample.at("content"), response = sample.at("response");
      line["prompts"].push_back(content.substr(0, content.size() - response.size()));
    }
    found.push_back(line);
  }
  return found;
}

}  // namespace first_party
