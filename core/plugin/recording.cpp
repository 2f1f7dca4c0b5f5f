#include "core/plugin/recording.hpp"

#include <cstring>
#include <fstream>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "core/plugin/host/staging.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;

struct DTypeName {
  const char* name;
  DLDataType dtype;
};
constexpr DTypeName kDTypes[] = {{"F32", {kDLFloat, 32, 1}}, {"F64", {kDLFloat, 64, 1}}, {"I64", {kDLInt, 64, 1}},
                                 {"I32", {kDLInt, 32, 1}},   {"I16", {kDLInt, 16, 1}},   {"U8", {kDLUInt, 8, 1}}};

bool same(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

const char* name_of(DLDataType dtype) {
  for (const DTypeName& known : kDTypes) {
    if (same(known.dtype, dtype)) return known.name;
  }
  fail(ErrorKind::internal, "recording: a dtype of code {} and {} bits cannot be recorded", dtype.code, dtype.bits);
}

RecordedArray read_array(const std::string& name, const Json& entry, std::string_view data, const std::string& where) {
  RecordedArray array{name, {}, entry.at("shape").get<std::vector<int64_t>>(), {}};
  const DTypeName* known = nullptr;
  for (const DTypeName& candidate : kDTypes) {
    if (entry.at("dtype") == candidate.name) known = &candidate;
  }
  const auto begin = entry.at("data_offsets").at(0).get<uint64_t>(),
             end = entry.at("data_offsets").at(1).get<uint64_t>();
  uint64_t count = 1;
  for (int64_t extent : array.shape) count *= static_cast<uint64_t>(extent);
  if (!known || begin > end || end > data.size() || end - begin != count * known->dtype.bits / 8) {
    fail(ErrorKind::data, "{}: '{}' has a dtype, shape or place that does not fit the file", where, name);
  }
  array.dtype = known->dtype;
  const auto* bytes = reinterpret_cast<const std::byte*>(data.data());
  array.bytes.assign(bytes + begin, bytes + end);
  return array;
}

}  // namespace

void Recording::add(std::string name, const DLTensor& tensor) {
  const auto* data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  const size_t size = static_cast<size_t>(element_count(tensor)) * tensor.dtype.bits / 8;
  arrays.push_back({std::move(name), tensor.dtype, {tensor.shape, tensor.shape + tensor.ndim}, {data, data + size}});
}

const RecordedArray* Recording::find(const std::string& name) const {
  for (const RecordedArray& array : arrays) {
    if (array.name == name) return &array;
  }
  return nullptr;
}

void write_recording(const std::filesystem::path& file, const Recording& recording) {
  Json header = {{"__metadata__", {{"hexad.loss_call", json_text(recording.about)}}}};
  uint64_t offset = 0;
  for (const RecordedArray& array : recording.arrays) {
    header[array.name] = {{"dtype", name_of(array.dtype)},
                          {"shape", array.shape},
                          {"data_offsets", {offset, offset + array.bytes.size()}}};
    offset += array.bytes.size();
  }
  std::string text = json_text(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t size = text.size();
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << text;
  for (const RecordedArray& array : recording.arrays) {
    out.write(reinterpret_cast<const char*>(array.bytes.data()), static_cast<std::streamsize>(array.bytes.size()));
  }
  if (!out.flush()) fail(ErrorKind::data, "{}: cannot be written: is the disk full?", file.string());
}

Recording read_recording(const std::filesystem::path& file) {
  const std::string bytes = read_file(file), where = file.string();
  uint64_t size = 0;
  if (bytes.size() >= sizeof size) std::memcpy(&size, bytes.data(), sizeof size);
  if (size == 0 || size > bytes.size() - sizeof size)
    fail(ErrorKind::data, "{}: not a recorded loss call (no safetensors header)", where);
  const std::string_view all = bytes;
  const Json header = try_parse_json<Json>(all.substr(sizeof size, size));
  try {
    Recording recording;
    recording.about = parse_json<Json>(header.at("__metadata__").at("hexad.loss_call").get<std::string>());
    for (const auto& [name, entry] : header.items()) {
      if (name != "__metadata__")
        recording.arrays.push_back(read_array(name, entry, all.substr(sizeof size + size), where));
    }
    return recording;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "{}: not a recorded loss call: {}", where, error.what());
  }
}

}  // namespace hexad::plugin
