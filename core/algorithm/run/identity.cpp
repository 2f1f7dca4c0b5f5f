#include "core/algorithm/run/identity.hpp"

#include <algorithm>
#include <filesystem>

#include "lib/base/file/folder.hpp"
#include "lib/base/file/input_file.hpp"
#include "lib/base/fingerprint.hpp"
#include "lib/base/json.hpp"

namespace hexad::algorithm {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::streamoff kEnd = 1 << 16;  // bytes of either end of a file of weights

std::string weights_of(const fs::path& model_dir) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : entries_of(model_dir))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  Fingerprint fingerprint;
  for (const fs::path& file : files) {
    fingerprint.add(file.filename().string());
    const auto size = static_cast<std::streamoff>(fs::file_size(file));
    fingerprint.add(std::to_string(size));
    InputFile in(file);
    std::string bytes(static_cast<size_t>(std::min(size, kEnd)), '\0');
    for (const std::streamoff begin : {std::streamoff{0}, size - static_cast<std::streamoff>(bytes.size())}) {
      in.seekg(begin);
      in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      fingerprint.add(bytes);
    }
  }
  return files.empty() ? "" : fingerprint.hex();
}

}  // namespace

Json identity_of(const config::RunConfig& run, const std::string& model_dir, const data::Contents& data) {
  const auto model = read_json<Json>(fs::path(model_dir) / "config.json");
  const bool samples = run.algorithm == config::Algorithm::grpo;
  Json identity = {
      {"model", Json::object()}, {"data", Json::array()}, {samples ? "train_prompts" : "train_examples", data.size}};
  if (!samples) identity["algorithm"] = name_of(run.algorithm);
  for (const char* key : {"model_type", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "vocab_size", "intermediate_size"}) {
    if (model.contains(key)) identity["model"][key] = model.at(key);
  }
  const std::string weights = weights_of(model_dir);
  if (!weights.empty()) identity["model"]["weights"] = weights;
  if (weights.empty() && run.policy.random_init_seed)
    identity["model"]["random_init_seed"] = *run.policy.random_init_seed;
  for (const config::DatasetConfig& dataset : run.data.train) identity["data"].push_back(dataset.dataset_name);
  identity[data.looked_at == data.size ? "data_contents" : "data_begins"] = data.fingerprint;
  return identity;
}

Json comparable(Json identity, const Json& saved) {
  if (saved.contains("data_contents") && identity.erase("data_begins") > 0)
    identity["data_contents"] = saved.at("data_contents");
  return identity;
}

}  // namespace hexad::algorithm
