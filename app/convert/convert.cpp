#include "app/convert/convert.hpp"

#include <cmath>
#include <limits>

#include "app/convert/gguf.hpp"
#include "app/convert/output.hpp"
#include "core/checkpoint/store.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/own_file.hpp"
#include "lib/base/json.hpp"
#include "lib/hub/hub.hpp"
#include "lib/tensorfile/foreign_folder.hpp"
#include "lib/tensorfile/safetensors.hpp"
#include "lib/tensorfile/safetensors_writer.hpp"
#include "lib/text/tokenizer/tokenizer_files.hpp"

namespace hexad::convert {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

void require_storable(tensorfile::DType dtype) {
  if (dtype == tensorfile::DType::f32 || dtype == tensorfile::DType::bf16 || dtype == tensorfile::DType::f16) return;
  fail(ErrorKind::config, "weights cannot be stored as {}: choose float32, bfloat16 or float16",
       tensorfile::torch_name(dtype));
}

// The least magnitude that `dtype` would round to infinity: halfway from its largest value to the next power of two.
float infinite_from(tensorfile::DType dtype) {
  return dtype == tensorfile::DType::f16    ? 65520
         : dtype == tensorfile::DType::bf16 ? 0x1.ffp127f
                                            : std::numeric_limits<float>::infinity();
}

// Stores fp32 values as `dtype`. Fails when a value is not finite, before (broken weights) or after the conversion.
void encode(std::span<const float> values, tensorfile::DType dtype, const std::string& tensor, const fs::path& source,
            std::vector<std::byte>& out) {
  const float limit = infinite_from(dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) < limit) continue;
    if (!std::isfinite(values[i])) {
      fail(ErrorKind::data, "{}: tensor \"{}\" holds {} at element {}: the weights are broken", source.string(), tensor,
           values[i], i);
    }
    fail(ErrorKind::data, "{}: tensor \"{}\" holds {} at element {}, too large for {}: choose {}", source.string(),
         tensor, values[i], i, tensorfile::torch_name(dtype),
         dtype == tensorfile::DType::f16 ? "bfloat16 or float32" : "float32");
  }
  out.resize(values.size() * tensorfile::dtype_size(dtype));
  tensorfile::from_float32(values, dtype, out);
}

// `folder`: the one that it was found in, if it was not named itself.
ConvertResult convert_gguf(const fs::path& source, const fs::path& folder, const fs::path& destination,
                           const ConvertOptions& options) {
  const tensorfile::Gguf gguf = tensorfile::Gguf::open(source);
  if (!folder.empty()) require_own_file(folder, source.filename().string(), gguf.file()->real_path());
  const tensorfile::DType dtype = options.dtype.value_or(tensorfile::DType::f32);
  Json config = gguf_config(gguf);
  config["torch_dtype"] = tensorfile::torch_name(dtype);
  const std::vector<GgufWeight> weights = gguf_weights(gguf, config);

  ConvertOutput output(destination);
  output.write_text("config.json", json_text(config, 2) + "\n");
  output.write_text("generation_config.json", json_text(gguf_generation_config(gguf), 2) + "\n");
  output.write_text("tokenizer.json", json_text(gguf_tokenizer(gguf), 2) + "\n");
  output.write_text("tokenizer_config.json", json_text(gguf_tokenizer_config(gguf), 2) + "\n");

  ConvertResult result{"gguf"};
  result.notes = gguf_notes(gguf);
  std::vector<tensorfile::TensorSpec> specs;
  for (const GgufWeight& weight : weights) {
    specs.push_back({weight.name, dtype, weight.shape});
    ++result.tensors, result.parameters += specs.back().elements(), result.bytes += specs.back().bytes();
  }
  tensorfile::ShardedWriter writer(output.directory(), specs, options.max_shard_bytes);
  std::vector<std::byte> bytes;
  for (const GgufWeight& weight : weights) {
    encode(read_gguf_weight(gguf, weight), dtype, weight.gguf_name, source, bytes);
    writer.write(weight.name, bytes);
  }
  writer.finish();
  output.commit();
  return result;
}

// A folder of model files: a Hugging Face folder, or a part of a checkpoint, whose own they then have to be.
struct Part {
  fs::path root;
  std::string name;  // of the folder below it; "" for itself

  fs::path folder() const { return name.empty() ? root : root / name; }
  std::string below_root(const std::string& file) const { return (fs::path(name) / file).string(); }
};

// What a link names outside of the folder is not taken into a copy, be it weights or text. It is looked at again when
// it is open: this is to say so before anything is read.
void require_own_files(const Part& part) {
  if (!part.name.empty()) require_own_file(part.root, part.name);
  for (const fs::directory_entry& entry : entries_of(part.folder()))
    if (entry.is_regular_file()) require_own_file(part.root, part.below_root(entry.path().filename().string()));
  for (const std::string& name : text::tokenizer_files(part.folder()))
    require_own_file(part.root, part.below_root(name));
}

// The files beside the weights (tokenizer, chat template, licence ...) are copied; a later file replaces an earlier
// one.
void copy_side_files(const Part& part, const ConvertOutput& output) {
  for (const fs::directory_entry& entry : entries_of(part.folder())) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.ends_with(".safetensors") || name == "model.safetensors.index.json") continue;
    if (name == "config.json") continue;
    copy_own_file(part.root, part.below_root(name), output.directory() / name);
  }
  for (const std::string& name : text::tokenizer_files(part.folder())) {
    const fs::path to = output.directory() / name;
    if (to.parent_path() == output.directory()) continue;
    fs::create_directories(to.parent_path());
    copy_own_file(part.root, part.below_root(name), to);
  }
}

// config.json with the new dtype.
void write_config(const Part& part, const ConvertOutput& output, std::optional<tensorfile::DType> dtype) {
  const fs::path path = part.folder() / "config.json";
  Json config = file_json<Json>(read_own_file(part.root, part.below_root("config.json")), path);
  if (!config.is_object()) fail(ErrorKind::data, "{}: not a JSON object", path.string());
  if (dtype) config[config.contains("dtype") ? "dtype" : "torch_dtype"] = tensorfile::torch_name(*dtype);
  output.write_text("config.json", json_text(config, 2) + "\n");
}

void require_weights(const fs::path& source) {
  if (fs::exists(source / "model.safetensors") || fs::exists(source / "model.safetensors.index.json")) return;
  const std::string other = tensorfile::other_weights(source);
  if (!other.empty())
    fail(ErrorKind::data, "{}: has neither model.safetensors nor model.safetensors.index.json; {}", source.string(),
         other);
}

// `tokenizer`: the part with the tokenizer's files, if it is another one.
ConvertResult convert_huggingface(const Part& model, const std::optional<Part>& tokenizer, const fs::path& destination,
                                  const ConvertOptions& options) {
  const fs::path source = model.folder();
  require_own_files(model);
  checkpoint::require_intact_model(source);
  require_weights(source);
  const tensorfile::Safetensors weights = tensorfile::Safetensors::open(source);
  for (const tensorfile::SafetensorsEntry& entry : weights.tensors())
    require_own_file(model.root, model.below_root(entry.file->path().filename().string()), entry.file->real_path());
  if (tokenizer && !fs::is_directory(tokenizer->folder()))
    fail(ErrorKind::data, "{}: is missing: this is no whole checkpoint", tokenizer->folder().string());
  if (tokenizer) require_own_files(*tokenizer);
  ConvertOutput output(destination);
  copy_side_files(model, output);
  if (tokenizer) copy_side_files(*tokenizer, output);
  write_config(model, output, options.dtype);

  ConvertResult result{tokenizer ? "checkpoint" : "huggingface"};
  std::vector<tensorfile::TensorSpec> specs;
  for (const tensorfile::SafetensorsEntry& entry : weights.tensors()) {
    specs.push_back({entry.name,
                     tensorfile::is_floating(entry.dtype) ? options.dtype.value_or(entry.dtype) : entry.dtype,
                     entry.shape});
    ++result.tensors, result.parameters += specs.back().elements(), result.bytes += specs.back().bytes();
  }
  tensorfile::ShardedWriter writer(output.directory(), specs, options.max_shard_bytes);
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < specs.size(); ++i) {
    const tensorfile::SafetensorsEntry& entry = weights.tensors()[i];
    if (specs[i].dtype == entry.dtype) {
      tensorfile::require_finite(entry, source);
      writer.write(entry.name, entry.data);
    } else {
      encode(tensorfile::to_float32(entry), specs[i].dtype, entry.name, source, bytes);
      writer.write(entry.name, bytes);
    }
  }
  writer.finish();
  output.commit();
  return result;
}

// The one .gguf of a directory without config.json; nothing when there is none.
std::optional<fs::path> gguf_in(const fs::path& directory) {
  std::optional<fs::path> found;
  for (const fs::directory_entry& entry : entries_of(directory)) {
    if (entry.path().extension() != ".gguf") continue;
    if (found) {
      fail(ErrorKind::data, "{}: holds several .gguf files ({} and {}): name one of them", directory.string(),
           found->filename().string(), entry.path().filename().string());
    }
    found = entry.path();
  }
  if (found) require_own_file(directory, found->filename().string());
  return found;
}

}  // namespace

ConvertResult convert(const fs::path& source, const fs::path& destination, const ConvertOptions& options) {
  if (options.dtype) require_storable(*options.dtype);
  if (!fs::exists(source)) {
    const std::string name = source.string();
    if (const auto cached = hub::find(hub::Use::weights, name, name)) return convert(*cached, destination, options);
    fail(ErrorKind::data, "{}: no such file or directory{}", name, hub::how_to_fetch(hub::Use::weights, name));
  }
  if (!fs::is_directory(source)) {
    if (source.extension() == ".gguf") return convert_gguf(source, {}, destination, options);
    fail(ErrorKind::data, "{}: neither a .gguf file nor a directory", source.string());
  }
  if (fs::exists(source / "config.json")) return convert_huggingface({source, ""}, {}, destination, options);
  if (checkpoint::is_checkpoint(source)) {
    return convert_huggingface({source, "policy/weights"}, Part{source, "policy/tokenizer"}, destination, options);
  }
  if (const std::optional<fs::path> gguf = gguf_in(source)) return convert_gguf(*gguf, source, destination, options);
  if (const std::optional<fs::path> newest = checkpoint::newest_checkpoint(source)) {
    fail(ErrorKind::data, "{}: holds checkpoints of a run: name one of them. The newest is {}", source.string(),
         newest->string());
  }
  const std::string other = tensorfile::other_weights(source);
  fail(ErrorKind::data, "{}: holds neither config.json nor policy/weights (a checkpoint) nor a .gguf file{}",
       source.string(), other.empty() ? "" : "; " + other);
}

}  // namespace hexad::convert
