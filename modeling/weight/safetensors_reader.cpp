#include "modeling/weight/safetensors_reader.hpp"

#include <fstream>

#include <ATen/Functions.h>
#include <nlohmann/json.hpp>

#include "modeling/error.hpp"
#include "modeling/weight/mapped_file.hpp"
#include "modeling/weight/safetensors_header.hpp"

namespace hexad::modeling {
namespace {

// shard file -> tensors that the index places in it
std::map<std::string, std::vector<std::string>> read_index(const std::filesystem::path& path) {
  std::map<std::string, std::vector<std::string>> shards;
  try {
    std::ifstream in(path);
    const nlohmann::json index = nlohmann::json::parse(in);
    for (const auto& [name, file] : index.at("weight_map").items()) {
      shards[file.get<std::string>()].push_back(name);
    }
  } catch (const nlohmann::json::exception& error) {
    fail("{}: malformed index: {}", path.string(), error.what());
  }
  for (const auto& [file, names] : shards) {
    if (std::filesystem::path(file).filename() != file) fail("{}: '{}' is not a file name", path.string(), file);
  }
  return shards;
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : origin_(path.string()) {
  if (!std::filesystem::is_directory(path)) {
    add_file(path, nullptr);
    return;
  }
  const std::filesystem::path index = path / "model.safetensors.index.json", single = path / "model.safetensors";
  if (std::filesystem::exists(single)) {
    add_file(single, nullptr);
  } else if (std::filesystem::exists(index)) {
    for (const auto& [file, names] : read_index(index)) add_file(path / file, &names);
  } else {
    fail("{}: found neither model.safetensors nor model.safetensors.index.json", path.string());
  }
}

void SafetensorsReader::add_file(const std::filesystem::path& file, const std::vector<std::string>* expected) {
  const auto mapping = std::make_shared<MappedFile>(file);
  files_[file.string()] = mapping;
  for (auto& [name, entry] : parse_safetensors_header(mapping->data(), mapping->size(), file.string())) {
    entries_[name] = {entry.shape, entry.dtype, file.string(), entry.begin, entry.end};
  }
  if (!expected) return;
  for (const std::string& name : *expected) {
    const auto found = entries_.find(name);
    if (found == entries_.end() || found->second.file != file.string()) {
      fail("{}: does not hold '{}', which the index places there", file.string(), name);
    }
  }
}

const StoredTensor& SafetensorsReader::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail("{}: there is no tensor '{}'", origin_, name);
  return found->second;
}

at::Tensor SafetensorsReader::tensor(const std::string& name) const {
  const StoredTensor& stored = entry(name);
  if (stored.shape.empty()) return rows(name, 0, 1).reshape({});
  return rows(name, 0, stored.shape[0]);
}

at::Tensor SafetensorsReader::rows(const std::string& name, int64_t begin, int64_t end) const {
  const StoredTensor& stored = entry(name);
  std::vector<int64_t> shape = stored.shape.empty() ? std::vector<int64_t>{1} : stored.shape;
  if (begin < 0 || begin > end || end > shape[0]) {
    fail("{}: rows {} to {} of '{}' were asked for, which has {}", stored.file, begin, end, name, shape[0]);
  }
  const uint64_t row_bytes = shape[0] ? (stored.end - stored.begin) / uint64_t(shape[0]) : 0;
  shape[0] = end - begin;
  const at::TensorOptions options(stored.dtype);
  const std::shared_ptr<MappedFile> mapping = files_.at(stored.file);
  uint8_t* data = mapping->data() + stored.begin + row_bytes * uint64_t(begin);
  const size_t element = c10::elementSize(stored.dtype);
  if (reinterpret_cast<uintptr_t>(data) % element != 0) {  // the format does not promise alignment
    at::Tensor copy = at::empty(shape, options);
    std::memcpy(copy.mutable_data_ptr(), data, copy.nbytes());
    return copy;
  }
  return at::from_blob(
      data, shape, [mapping](void*) {}, options);
}

}  // namespace hexad::modeling
