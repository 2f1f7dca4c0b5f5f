#include "core/algorithm/run/model_directory.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/checkpoint/store.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/hub/hub.hpp"
#include "lib/tensorfile/foreign_folder.hpp"

namespace hexad::algorithm {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& what) { fail(ErrorKind::config, "policy.model_name: {}", what); }

// Of the folders beside it.
std::string near_folder(const fs::path& path) {
  std::vector<std::string> beside;
  std::error_code unreadable;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(path.parent_path().empty() ? fs::path(".") : path.parent_path(), unreadable)) {
    if (entry.is_directory(unreadable)) beside.push_back((path.parent_path() / entry.path().filename()).string());
  }
  std::ranges::sort(beside);
  return did_you_mean(path.string(), beside);
}

}  // namespace

std::string find_model(const std::string& model_name, bool has_weights) {
  const fs::path path(model_name);
  std::error_code unreadable;
  if (fs::exists(path / "config.json", unreadable)) return fs::canonical(path).string();
  if (path.extension() == ".gguf" && fs::exists(path, unreadable))
    refuse(fmt::format("{0} is a GGUF file. Convert it once: hexad convert {0} <directory>", model_name));
  if (fs::is_directory(path, unreadable)) {
    if (checkpoint::is_checkpoint(path))
      refuse(fmt::format("{0} is a checkpoint of a run. Make a model directory of it: hexad convert {0} <directory>",
                         model_name));
    if (const auto newest = checkpoint::newest_checkpoint(path))
      refuse(fmt::format("{} holds checkpoints of a run. Make a model directory of one: hexad convert {} <directory>",
                         model_name, newest->string()));
    const std::string other = tensorfile::other_weights(path);
    refuse(
        fmt::format("{} has no config.json. Wanted: a Hugging Face model directory (config.json, tokenizer.json, "
                    "*.safetensors){}",
                    model_name, other.empty() ? "" : "; " + other));
  }
  if (fs::exists(path, unreadable))
    refuse(fmt::format("{} is no directory. Wanted: a Hugging Face model directory", model_name));
  const auto use = has_weights ? hub::Use::weights : hub::Use::model;
  if (const auto cached = hub::find(use, "policy.model_name", model_name)) return find_model(cached->string());
  const std::string near = near_folder(path);
  refuse(fmt::format("no such directory: '{}'{} Wanted: the path of a Hugging Face model directory{}", model_name,
                     near.empty() ? "." : near, near.empty() ? hub::how_to_fetch(use, model_name) : ""));
}

ModelOnDisk read_model(const config::RunConfig& run) {
  ModelOnDisk model{find_model(run.policy.model_name, !run.policy.random_init_seed), {}};
  checkpoint::require_intact_model(model.directory);
  model.text = rollout::load_model_text(model.directory, run.policy.tokenizer);
  return model;
}

}  // namespace hexad::algorithm
