#include "app/convert/part.hpp"

#include "core/checkpoint/store.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/own_file.hpp"
#include "lib/base/json.hpp"
#include "lib/tensorfile/foreign_folder.hpp"
#include "lib/text/tokenizer/tokenizer_files.hpp"

namespace hexad::convert {
namespace fs = std::filesystem;
namespace {

void require_weights(const fs::path& source) {
  if (fs::exists(source / "model.safetensors") || fs::exists(source / "model.safetensors.index.json")) return;
  const std::string other = tensorfile::other_weights(source);
  if (!other.empty())
    fail(ErrorKind::data, "{}: has neither model.safetensors nor model.safetensors.index.json; {}", source.string(),
         other);
}

}  // namespace

void require_own_files(const Part& part) {
  if (!part.name.empty()) require_own_file(part.root, part.name);
  for (const fs::directory_entry& entry : entries_of(part.folder()))
    if (entry.is_regular_file()) require_own_file(part.root, part.below_root(entry.path().filename().string()));
  for (const std::string& name : text::tokenizer_files(part.folder()))
    require_own_file(part.root, part.below_root(name));
}

nlohmann::ordered_json read_config(const Part& part) {
  const fs::path path = part.folder() / "config.json";
  auto config = file_json<nlohmann::ordered_json>(read_own_file(part.root, part.below_root("config.json")), path);
  if (!config.is_object()) fail(ErrorKind::data, "{}: not a JSON object", path.string());
  return config;
}

tensorfile::Safetensors open_weights(const Part& part) {
  const fs::path source = part.folder();
  checkpoint::require_intact_model(source);
  require_weights(source);
  tensorfile::Safetensors weights = tensorfile::Safetensors::open(source);
  for (const tensorfile::SafetensorsEntry& entry : weights.tensors())
    require_own_file(part.root, part.below_root(entry.file->path().filename().string()), entry.file->real_path());
  return weights;
}

}  // namespace hexad::convert
