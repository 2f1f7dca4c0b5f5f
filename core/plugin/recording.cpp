#include "core/plugin/recording.hpp"

#include "core/plugin/host/staging.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/tensorfile/safetensors_writer.hpp"

namespace hexad::plugin {
namespace {

using tensorfile::DType;

constexpr const char* kAbout = "hexad.loss_call";  // in the metadata of the file

struct RecordedType {
  DType stored;
  DLDataType dtype;
};
constexpr RecordedType kTypes[] = {{DType::f32, {kDLFloat, 32, 1}}, {DType::f64, {kDLFloat, 64, 1}},
                                   {DType::i64, {kDLInt, 64, 1}},   {DType::i32, {kDLInt, 32, 1}},
                                   {DType::i16, {kDLInt, 16, 1}},   {DType::u8, {kDLUInt, 8, 1}}};

bool same(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

DType stored_type(DLDataType dtype) {
  for (const RecordedType& known : kTypes) {
    if (same(known.dtype, dtype)) return known.stored;
  }
  fail(ErrorKind::internal, "recording: a dtype of code {} and {} bits cannot be recorded", dtype.code, dtype.bits);
}

DLDataType recorded_type(const tensorfile::SafetensorsEntry& entry, const std::string& where) {
  for (const RecordedType& known : kTypes) {
    if (known.stored == entry.dtype) return known.dtype;
  }
  fail(ErrorKind::data, "{}: not a recorded loss call: '{}' has dtype {}", where, entry.name,
       tensorfile::dtype_name(entry.dtype));
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
  std::vector<tensorfile::TensorSpec> specs;
  for (const RecordedArray& array : recording.arrays) {
    specs.push_back({array.name, stored_type(array.dtype), array.shape});
  }
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error)
    fail(ErrorKind::data, "plugins.record_dir: cannot make {}: {}", file.parent_path().string(), error.message());
  tensorfile::SafetensorsWriter writer(file, specs, {{kAbout, json_text(recording.about)}});
  for (const RecordedArray& array : recording.arrays) writer.write(array.name, array.bytes);
  writer.finish();
}

Recording read_recording(const std::filesystem::path& file) {
  const std::string where = file.string();
  const tensorfile::Safetensors stored = tensorfile::Safetensors::open(file);
  const auto about = stored.metadata().find(kAbout);
  if (about == stored.metadata().end()) {
    fail(ErrorKind::data, "{}: not a recorded loss call: its metadata has no \"{}\"", where, kAbout);
  }
  Recording recording;
  recording.about = try_parse_json<nlohmann::ordered_json>(about->second);
  if (!recording.about.is_object()) {
    fail(ErrorKind::data, "{}: not a recorded loss call: \"{}\" in its metadata is no JSON object", where, kAbout);
  }
  for (const tensorfile::SafetensorsEntry& entry : stored.tensors()) {
    recording.arrays.push_back({entry.name, recorded_type(entry, where), entry.shape,
                                std::vector<std::byte>(entry.data.begin(), entry.data.end())});
  }
  return recording;
}

}  // namespace hexad::plugin
