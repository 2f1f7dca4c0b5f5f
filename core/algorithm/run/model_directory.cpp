#include "core/algorithm/run/model_directory.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/checkpoint/store.hpp"
#include "lib/base/error.hpp"
#include "lib/base/pattern.hpp"
#include "lib/base/text.hpp"
#include "lib/tensorfile/foreign_folder.hpp"

namespace hexad::algorithm {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& what) { fail(ErrorKind::config, "policy.model_name: {}", what); }

// "owner/name", where no folder `owner` makes a path of it.
bool is_hub_name(const std::string& name) {
  static const Pattern pattern("[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*");
  std::error_code unreadable;
  return pattern.matches(name) && !fs::exists(name.substr(0, name.find('/')), unreadable);
}

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

std::string find_model(const std::string& model_name) {
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
  if (is_hub_name(model_name))
    refuse(
        fmt::format("no directory '{0}'. Hexad does not download models: give the path of a Hugging Face model "
                    "directory (hf download {0} --local-dir <directory>)",
                    model_name));
  if (fs::exists(path, unreadable))
    refuse(fmt::format("{} is no directory. Wanted: a Hugging Face model directory", model_name));
  const std::string near = near_folder(path);
  refuse(fmt::format("no such directory: '{}'{} Wanted: the path of a Hugging Face model directory", model_name,
                     near.empty() ? "." : near));
}

}  // namespace hexad::algorithm
