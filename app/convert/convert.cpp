#include "app/convert/convert.hpp"

#include "app/convert/gguf.hpp"
#include "app/convert/output.hpp"
#include "app/convert/part.hpp"
#include "app/convert/storable.hpp"
#include "app/convert/to_gguf.hpp"
#include "core/checkpoint/store.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/own_file.hpp"
#include "lib/base/json.hpp"
#include "lib/hub/hub.hpp"
#include "lib/tensorfile/foreign_folder.hpp"
#include "lib/tensorfile/gguf_block.hpp"
#include "lib/tensorfile/safetensors.hpp"
#include "lib/tensorfile/safetensors_writer.hpp"
#include "lib/text/tokenizer/tokenizer_files.hpp"

namespace hexad::convert {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

void require_possible(const ConvertOptions& options, const fs::path& destination) {
  if (options.q8_0 && !is_gguf(destination)) {
    fail(ErrorKind::config,
         "{}: q8_0 is a type of GGUF files alone: name a file that ends in .gguf, or choose float32, "
         "bfloat16 or float16",
         destination.string());
  }
  const tensorfile::DType dtype = options.dtype.value_or(tensorfile::DType::f32);
  if (dtype == tensorfile::DType::f32 || dtype == tensorfile::DType::bf16 || dtype == tensorfile::DType::f16) return;
  fail(ErrorKind::config, "weights cannot be stored as {}: choose float32, bfloat16 or float16",
       tensorfile::torch_name(dtype));
}

// Stores fp32 values as `dtype`. Fails when a value is not finite, before (broken weights) or after the conversion.
void encode(std::span<const float> values, tensorfile::DType dtype, const std::string& tensor, const fs::path& source,
            std::vector<std::byte>& out) {
  const bool half = dtype == tensorfile::DType::f16;
  const tensorfile::GgufType type = half                               ? tensorfile::GgufType::f16
                                    : dtype == tensorfile::DType::bf16 ? tensorfile::GgufType::bf16
                                                                       : tensorfile::GgufType::f32;
  require_storable(values, {tensor, source, std::string(tensorfile::torch_name(dtype)),
                            tensorfile::gguf_infinite_from(type), half ? "bfloat16 or float32" : "float32"});
  out.resize(values.size() * tensorfile::dtype_size(dtype));
  tensorfile::from_float32(values, dtype, out);
}

// `folder`: the one that it was found in, if it was not named itself.
ConvertResult convert_gguf(const fs::path& source, const fs::path& folder, const fs::path& destination,
                           const ConvertOptions& options) {
  if (is_gguf(destination)) {
    fail(ErrorKind::data, "{}: is a GGUF file, and {} would be one too: convert it into a folder first",
         source.string(), destination.string());
  }
  const tensorfile::Gguf gguf = tensorfile::Gguf::open(source);
  if (!folder.empty()) require_own_file(folder, source.filename().string(), gguf.file()->real_path());
  const tensorfile::DType dtype = options.dtype.value_or(tensorfile::DType::f32);
  Json config = gguf_config(gguf);
  config["torch_dtype"] = tensorfile::torch_name(dtype);
  const std::vector<GgufWeight> weights = gguf_weights(config);
  check_gguf_weights(gguf, weights);

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
  Json config = read_config(part);
  if (dtype) config[config.contains("dtype") ? "dtype" : "torch_dtype"] = tensorfile::torch_name(*dtype);
  output.write_text("config.json", json_text(config, 2) + "\n");
}

// `tokenizer`: the part with the tokenizer's files, if it is another one.
ConvertResult convert_huggingface(const Part& model, const std::optional<Part>& tokenizer, const fs::path& destination,
                                  const ConvertOptions& options) {
  const fs::path source = model.folder();
  const tensorfile::Safetensors weights = open_weights(model);
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

ConvertResult convert_folder(const Part& model, const std::optional<Part>& tokenizer, const fs::path& destination,
                             const ConvertOptions& options) {
  require_own_files(model);
  if (tokenizer && !fs::is_directory(tokenizer->folder()))
    fail(ErrorKind::data, "{}: is missing: this is no whole checkpoint", tokenizer->folder().string());
  if (tokenizer) require_own_files(*tokenizer);
  return is_gguf(destination) ? convert_to_gguf(model, tokenizer, destination, options)
                              : convert_huggingface(model, tokenizer, destination, options);
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
  require_possible(options, destination);
  if (!fs::exists(source)) {
    const std::string name = source.string();
    if (const auto cached = hub::find(hub::Use::weights, name, name)) return convert(*cached, destination, options);
    fail(ErrorKind::data, "{}: no such file or directory{}", name, hub::how_to_fetch(hub::Use::weights, name));
  }
  if (!fs::is_directory(source)) {
    if (source.extension() == ".gguf") return convert_gguf(source, {}, destination, options);
    fail(ErrorKind::data, "{}: neither a .gguf file nor a directory", source.string());
  }
  if (fs::exists(source / "config.json")) return convert_folder({source, ""}, {}, destination, options);
  if (checkpoint::is_checkpoint(source))
    return convert_folder({source, "policy/weights"}, Part{source, "policy/tokenizer"}, destination, options);
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
