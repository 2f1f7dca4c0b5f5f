#include "lib/tensorfile/safetensors.hpp"

#include <cmath>
#include <set>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/tensorfile/safetensors_header.hpp"

namespace hexad::tensorfile {
namespace {

namespace fs = std::filesystem;

// The index's "weight_map": tensor name -> file name, each a plain name beside the index.
std::map<std::string, std::string> read_weight_map(const fs::path& index) {
  const auto json = try_parse_json<nlohmann::json>(read_file(index));
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) {
    fail(ErrorKind::data, "{}: not an index of safetensors files: no object \"weight_map\"", index.string());
  }
  std::map<std::string, std::string> map;
  for (const auto& [name, file] : json["weight_map"].items()) {
    if (!file.is_string() || fs::path(file.get<std::string>()).filename() != file.get<std::string>()) {
      fail(ErrorKind::data, "{}: tensor \"{}\" is said to be in {}, wanted the name of a file beside the index",
           index.string(), name, json_text(file));
    }
    map[name] = file.get<std::string>();
  }
  return map;
}

fs::path resolve(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  if (fs::exists(path / "model.safetensors")) return path / "model.safetensors";
  if (fs::exists(path / "model.safetensors.index.json")) return path / "model.safetensors.index.json";
  fail(ErrorKind::data, "{}: has neither model.safetensors nor model.safetensors.index.json", path.string());
}

}  // namespace

uint64_t TensorSpec::elements() const {
  uint64_t count = 1;
  for (int64_t dimension : shape) count *= static_cast<uint64_t>(dimension);
  return count;
}

Safetensors Safetensors::open(const fs::path& path, Pages pages) {
  Safetensors result;
  result.path_ = resolve(path);
  if (result.path_.extension() != ".json") {
    result.add_file(result.path_, pages, [](const std::string&) { return true; });
    return result;
  }
  const std::map<std::string, std::string> weight_map = read_weight_map(result.path_);
  std::set<std::string> files;
  for (const auto& [name, file] : weight_map) files.insert(file);
  for (const std::string& file : files) {
    result.add_file(result.path_.parent_path() / file, pages, [&](const std::string& name) {
      const auto listed = weight_map.find(name);
      if (listed != weight_map.end() && listed->second != file) {
        fail(ErrorKind::data, "{}: tensor \"{}\" is said to be in {}, but {} has it too", result.path_.string(), name,
             listed->second, file);
      }
      return listed != weight_map.end();
    });
  }
  for (const auto& [name, file] : weight_map) {
    if (!result.find(name)) {
      fail(ErrorKind::data, "{}: tensor \"{}\" is missing from {}", result.path_.string(), name, file);
    }
  }
  return result;
}

void Safetensors::add_file(const fs::path& path, Pages pages, const std::function<bool(const std::string&)>& belongs) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path, pages);
  SafetensorsHeader header = parse_safetensors_header(file->bytes(), path.string());
  for (SafetensorsEntry& entry : header.entries) {
    if (!belongs(entry.name)) continue;
    entry.file = file;
    by_name_.emplace(entry.name, entries_.size());  // once: the header and the index have no name twice
    entries_.push_back(std::move(entry));
  }
  metadata_.merge(header.metadata);
}

const SafetensorsEntry* Safetensors::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

const SafetensorsEntry& Safetensors::at(std::string_view name) const {
  if (const SafetensorsEntry* entry = find(name)) return *entry;
  std::vector<std::string> names;
  for (const SafetensorsEntry& entry : entries_) names.push_back(entry.name);
  const std::optional<std::string> similar = nearest(name, names);
  fail(ErrorKind::data, "{}: has no tensor \"{}\"{}", path_.string(), name,
       similar ? fmt::format(" (there is \"{}\")", *similar) : "");
}

std::vector<float> to_float32(const SafetensorsEntry& entry) {
  std::vector<float> values(entry.elements());
  to_float32(entry.dtype, entry.data, values);
  return values;
}

void require_finite(const SafetensorsEntry& entry, const fs::path& origin) {
  if (!is_floating(entry.dtype)) return;
  constexpr size_t chunk = 1 << 16;
  std::vector<float> values;
  for (uint64_t begin = 0; begin < entry.elements(); begin += chunk) {
    values.resize(std::min<uint64_t>(chunk, entry.elements() - begin));
    const size_t size = dtype_size(entry.dtype);
    to_float32(entry.dtype, entry.data.subspan(begin * size, values.size() * size), values);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) continue;
      fail(ErrorKind::data, "{}: tensor \"{}\" holds {} at element {}: the weights are broken", origin.string(),
           entry.name, values[i], begin + i);
    }
  }
}

}  // namespace hexad::tensorfile
