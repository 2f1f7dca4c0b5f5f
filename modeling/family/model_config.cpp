#include "modeling/family/model_config.hpp"

#include <algorithm>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "modeling/weight/stored_dtype.hpp"

namespace hexad::modeling {
namespace {

nlohmann::json read_json(const std::filesystem::path& path) {
  const std::string text = with_tensorfile([&] { return hexad::read_file(path); });
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    if (const std::string_view hint = lfs_hint(text); !hint.empty()) fail("{}{}", path.string(), hint);
    fail("{}: not valid JSON: {}", path.string(), error.what());
  }
}

}  // namespace

ModelConfig load_model_config(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / "config.json";
  ModelConfig config = parse_model_config(read_json(path), path.string());
  const std::filesystem::path generation = dir / "generation_config.json";
  if (std::filesystem::exists(generation)) {
    const nlohmann::json json = read_json(generation);
    for (int64_t id : model::token_ids(model::ConfigFields(json, generation.string()), "eos_token_id")) {
      auto& ids = config.eos_token_ids;
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
  }
  return config;
}

}  // namespace hexad::modeling
