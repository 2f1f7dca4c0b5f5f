#include "app/convert/to_gguf.hpp"

#include <algorithm>
#include <set>

#include "app/convert/gguf.hpp"
#include "app/convert/gguf_architecture.hpp"
#include "app/convert/gguf_rope.hpp"
#include "app/convert/gguf_text.hpp"
#include "app/convert/huggingface_config.hpp"
#include "app/convert/output.hpp"
#include "app/convert/storable.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file/own_file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/tensorfile/foreign_folder.hpp"
#include "lib/tensorfile/gguf_block.hpp"

namespace hexad::convert {
namespace {

using Json = nlohmann::ordered_json;
using tensorfile::GgufType;
namespace fs = std::filesystem;

// How the file as a whole is stored: its name in config.json, llama.cpp's number (LLAMA_FTYPE_*).
struct FileType {
  GgufType type;
  const char* name;
  uint32_t number;
  const char* instead;  // types that hold larger values
};

constexpr FileType kFileTypes[] = {
    {GgufType::f32, "float32", 0, ""},
    {GgufType::f16, "float16", 1, "bfloat16 or float32"},
    {GgufType::q8_0, "q8_0", 7, "bfloat16 or float32"},
    {GgufType::bf16, "bfloat16", 32, "float32"},
};

const FileType& file_type(GgufType type) {
  return *std::ranges::find_if(kFileTypes, [&](const FileType& each) { return each.type == type; });
}

const FileType& file_type(const ConvertOptions& options, const tensorfile::Safetensors& weights) {
  if (options.q8_0) return file_type(GgufType::q8_0);
  const bool half = !weights.tensors().empty() && weights.tensors()[0].dtype == tensorfile::DType::f16;
  const tensorfile::DType dtype = options.dtype.value_or(half ? tensorfile::DType::f16 : tensorfile::DType::bf16);
  return file_type(dtype == tensorfile::DType::f16    ? GgufType::f16
                   : dtype == tensorfile::DType::bf16 ? GgufType::bf16
                                                      : GgufType::f32);
}

// The types that llama.cpp's converter gives tensors, where the file is of `wanted`.
GgufType type_of(const GgufWeight& weight, GgufType wanted) {
  const std::string& name = weight.gguf_name;
  const bool router = name.find(".ffn_gate_inp") != std::string::npos;
  if (weight.shape.size() < 2 || router || name.ends_with("_norm.weight")) return GgufType::f32;
  const GgufType halves = wanted == GgufType::q8_0 ? GgufType::f16 : wanted;
  return weight.shape.back() % 32 == 0 ? wanted : halves;
}

// What the model has; one that is tied may bring its head all the same. Fails for one that is missing, of a wrong
// shape, or belongs nowhere.
void check_weights(const tensorfile::Safetensors& weights, const std::vector<GgufWeight>& wanted,
                   const fs::path& folder, const std::string& type) {
  std::set<std::string> used = {"lm_head.weight"};
  for (const GgufWeight& weight : wanted) {
    const tensorfile::SafetensorsEntry& entry = weights.at(weight.name);
    if (entry.shape != weight.shape) {
      fail(ErrorKind::data, "{}: tensor \"{}\" has shape [{}], config.json wants [{}]", folder.string(), weight.name,
           joined(entry.shape), joined(weight.shape));
    }
    if (!tensorfile::is_floating(entry.dtype)) {
      fail(ErrorKind::data, "{}: tensor \"{}\" is stored as {}, wanted a floating-point type", folder.string(),
           weight.name, tensorfile::torch_name(entry.dtype));
    }
    used.insert(weight.name);
  }
  for (const tensorfile::SafetensorsEntry& entry : weights.tensors()) {
    if (used.contains(entry.name) || entry.name.ends_with(".rotary_emb.inv_freq")) continue;
    fail(ErrorKind::data, "{}: tensor \"{}\" belongs to no part of a {} model, as GGUF has it", folder.string(),
         entry.name, type);
  }
}

// What config.json announces is compared with the file before a table of it is made: each layer, and each expert of
// one, has tensors of its own.
void check_announced(const Json& config, const GgufArchitecture& architecture, const tensorfile::Safetensors& weights,
                     const fs::path& folder) {
  const auto layers = config.at("num_hidden_layers").get<uint64_t>();  // both fit into 31 bits
  const uint64_t experts = architecture.experts ? config.at(architecture.experts).get<uint64_t>() : 1;
  if (layers * experts <= weights.tensors().size()) return;
  fail(ErrorKind::data, "{}: config.json announces {} layers{}, and there are {} tensors", folder.string(), layers,
       architecture.experts ? fmt::format(" of {} experts", experts) : "", weights.tensors().size());
}

// Writes values as blocks of a type, a few rows at a time: what is in memory does not depend on the tensor's size.
class RowWriter {
 public:
  RowWriter(tensorfile::GgufWriter& writer, fs::path source) : writer_(writer), source_(std::move(source)) {}

  void write(const tensorfile::SafetensorsEntry& entry, const GgufWeight& weight, const FileType& type) {
    const Storing storing = {entry.name, source_, type.name, tensorfile::gguf_infinite_from(type.type), type.instead};
    // A vector is one row, unless its elements are those of rotated rows.
    const bool matrix = weight.shape.size() > 1 || weight.permuted_heads > 0;
    const int64_t rows = matrix ? weight.shape[0] : 1;
    const size_t columns = entry.elements() / static_cast<size_t>(rows);
    const size_t stored = columns * tensorfile::dtype_size(entry.dtype);
    for (int64_t row = 0; row < rows; ++row) {
      const auto from = static_cast<size_t>(weight.model_row(row));
      values_.resize(values_.size() + columns);
      const std::span<float> values = std::span(values_).last(columns);
      tensorfile::to_float32(entry.dtype, entry.data.subspan(from * stored, stored), values);
      require_storable(values, storing, from * columns);
      if (values_.size() >= kValuesAtOnce) flush(type.type);
    }
    flush(type.type);
  }

 private:
  static constexpr size_t kValuesAtOnce = size_t{1} << 18;

  void flush(GgufType type) {
    const tensorfile::GgufBlock& block = *tensorfile::gguf_block(static_cast<uint32_t>(type));
    bytes_.resize(values_.size() / block.elements * block.bytes);
    tensorfile::quantize(values_, type, bytes_);
    writer_.append(bytes_);
    values_.clear();
  }

  tensorfile::GgufWriter& writer_;
  fs::path source_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
};

// The name that a program shows: that of the model, and not of the step of a run or of its part of a checkpoint.
std::string model_name(const Json& config, const Part& model) {
  const Json given = config.value("_name_or_path", Json());
  fs::path path = given.is_string() && given != "" ? fs::path(given.get<std::string>()) : fs::absolute(model.root);
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

void add_numbers(const Json& config, const GgufArchitecture& architecture, tensorfile::GgufEntries& entries) {
  for (const GgufNumber& number : gguf_numbers()) {
    if (!config.contains(number.config)) continue;
    const std::string key = fmt::format("{}.{}", architecture.name, number.name);
    const Json& value = config.at(number.config);
    if (number.real)
      entries.emplace_back(key, value.get<float>());
    else
      entries.emplace_back(key, value.get<uint32_t>());
  }
}

void add_sampling(const Json& generation, tensorfile::GgufEntries& entries) {
  for (const GgufSampling& how : gguf_sampling()) {
    const Json value = generation.value(how.config, Json());
    if (how.real && value.is_number())
      entries.emplace_back(how.name, value.get<float>());
    else if (!how.real && value.is_number_integer())
      entries.emplace_back(how.name, value.get<int32_t>());
  }
}

Json generation_config(const Part& model) {
  const char* const file = "generation_config.json";
  if (!fs::exists(model.folder() / file)) return Json::object();
  Json config = file_json<Json>(read_own_file(model.root, model.below_root(file)), model.folder() / file);
  if (!config.is_object()) fail(ErrorKind::data, "{}: not a JSON object", (model.folder() / file).string());
  return config;
}

// Of the tensors, one for all experts of a matrix. Notes those that are not of the type that was asked for.
std::vector<tensorfile::GgufSpec> specs_of(const std::vector<GgufWeight>& weights, GgufType wanted,
                                           std::vector<std::string>& notes) {
  std::vector<tensorfile::GgufSpec> specs;
  size_t halves = 0;
  for (const GgufWeight& weight : weights) {
    if (weight.expert > 0) continue;
    specs.push_back({weight.gguf_name, type_of(weight, wanted), weight.gguf_shape()});
    if (wanted == GgufType::q8_0 && specs.back().type == GgufType::f16) ++halves;
  }
  if (halves > 0)
    notes.push_back(
        fmt::format("{} of {} tensors have rows that do not divide into blocks of 32 values, and are stored "
                    "as float16",
                    halves, specs.size()));
  return specs;
}

}  // namespace

ConvertResult convert_to_gguf(const Part& model, const std::optional<Part>& tokenizer, const fs::path& destination,
                              const ConvertOptions& options) {
  const fs::path source = model.folder();
  const Json given = read_config(model), generation = generation_config(model);
  if (const std::string beside = tensorfile::quantization_beside(source); !beside.empty())
    fail(ErrorKind::data, "{}", tensorfile::quantized_text(source, beside));
  const Json config = known_config(given, (source / "config.json").string());
  const GgufArchitecture& architecture = *architecture_of(config.at("model_type"));
  const tensorfile::Safetensors weights = open_weights(model);
  const FileType& type = file_type(options, weights);
  check_announced(config, architecture, weights, source);
  const std::vector<GgufWeight> table = gguf_weights(config);
  check_weights(weights, table, source, architecture.model_type);
  GgufText text = gguf_text(tokenizer ? tokenizer->folder() : source, config.at("vocab_size"), {generation, given});

  tensorfile::GgufEntries entries = {{"general.architecture", std::string(architecture.name)},
                                     {"general.type", std::string("model")},
                                     {"general.name", model_name(given, model)}};
  add_sampling(generation, entries);
  add_numbers(config, architecture, entries);
  std::ranges::move(rope_entries(config.at("rope_scaling"), architecture.name), std::back_inserter(entries));
  entries.emplace_back("general.file_type", type.number);
  entries.emplace_back("general.quantization_version", uint32_t{2});
  std::ranges::move(text.entries, std::back_inserter(entries));

  ConvertResult result{.from = tokenizer ? "checkpoint" : "huggingface", .notes = std::move(text.notes)};
  std::vector<tensorfile::GgufSpec> specs = specs_of(table, type.type, result.notes);
  const std::vector<float> divisors =
      rope_divisors(config.at("rope_scaling"), config.at("head_dim"), config.at("rope_theta"));
  if (!divisors.empty())
    specs.insert(specs.begin(), {kRopeDivisors, GgufType::f32, {static_cast<int64_t>(divisors.size())}});
  for (const tensorfile::GgufSpec& spec : specs)
    ++result.tensors, result.parameters += spec.elements(), result.bytes += spec.bytes();

  ConvertOutput output(destination, ConvertOutput::Makes::file);
  const std::string file = "model.gguf";
  tensorfile::GgufWriter writer(output.directory() / file, entries, specs);
  writer.append(std::as_bytes(std::span(divisors)));
  RowWriter rows(writer, source);
  for (const GgufWeight& weight : table)
    rows.write(weights.at(weight.name), weight, file_type(type_of(weight, type.type)));
  writer.finish();
  output.commit_file(file);
  return result;
}

}  // namespace hexad::convert
