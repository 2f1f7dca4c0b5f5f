#include "modeling/backend/weight/checkpoint_files.hpp"

#include <ATen/Functions.h>

#include "lib/base/file.hpp"
#include "lib/base/file/own_file.hpp"
#include "modeling/error.hpp"
#include "modeling/weight/stored_dtype.hpp"

namespace hexad::modeling {
namespace {

void replace_file(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path temporary = file.parent_path() / ("." + file.filename().string() + ".partial");
  with_tensorfile([&] { hexad::write_file(temporary, text); });
  std::filesystem::rename(temporary, file);
}

constexpr const char* kForeign = "it was saved by another optimizer or for another model";

}  // namespace

CheckpointWriter::CheckpointWriter(const Group& world, const std::filesystem::path& dir,
                                   const std::vector<TensorSpec>& specs)
    : world_(world), dir_(dir) {
  run([&] { file_.emplace(dir, specs); });
}

void CheckpointWriter::run(const std::function<void()>& body) {
  if (world_.rank() != 0 || !error_.empty()) return;
  try {
    body();
  } catch (const std::exception& error) {
    error_ = error.what();
  }
}

void CheckpointWriter::write(const std::string& name, const at::Tensor& whole) {
  run([&] { file_->write(name, whole); });
}

void CheckpointWriter::finish() {
  run([&] { file_->finish(); });
  file_.reset();
  at::Tensor flag = at::full({1}, error_.empty() ? 0.0f : 1.0f, at::kFloat);
  world_.all_reduce(flag, Reduce::max).wait();
  if (!error_.empty()) throw Error(error_);
  if (flag.item<float>() > 0) fail("rank 0 could not write {}: its own error says why", dir_.string());
}

namespace {

// "LlamaForSequenceClassification": the class of transformers that has a score head.
std::string sequence_classifier(const nlohmann::json& document) {
  const nlohmann::json& names = document.value("architectures", nlohmann::json::array());
  std::string name = names.empty() ? "LlamaForCausalLM" : names[0].get<std::string>();
  const size_t suffix = name.find("For");
  return name.substr(0, suffix) + "ForSequenceClassification";
}

}  // namespace

void write_model_configs(const ModelConfig& config, const std::filesystem::path& source_dir,
                         const std::filesystem::path& dir) {
  nlohmann::json document = config.original;
  document[document.contains("torch_dtype") ? "torch_dtype" : "dtype"] = "float32";
  if (config.reward_head) {
    document["architectures"] = nlohmann::json::array({sequence_classifier(document)});
    document["num_labels"] = 1;
  }
  if (document.contains("num_nextn_predict_layers")) document["num_nextn_predict_layers"] = 0;  // never loaded
  replace_file(dir / "config.json", document.dump(2) + "\n");
  const char* const generation = "generation_config.json";
  if (std::filesystem::exists(source_dir / generation) && !std::filesystem::equivalent(source_dir, dir) &&
      leads_out(source_dir, generation).empty())
    with_tensorfile([&] { hexad::copy_own_file(source_dir, generation, dir / generation); });
}

std::string optimizer_key(const std::string& weight, const std::string& state) { return weight + "." + state; }

std::vector<TensorSpec> model_specs(const std::vector<WeightInfo>& table) {
  std::vector<TensorSpec> specs;
  for (const WeightInfo& info : table) specs.push_back({info.hf_name, info.shape, at::kFloat});
  return specs;
}

std::vector<TensorSpec> optimizer_specs(const std::vector<WeightInfo>& table, const std::vector<std::string>& states) {
  std::vector<TensorSpec> specs = {{kOptimizerSteps, {1}, at::kLong}};
  for (const WeightInfo& info : table)
    for (const std::string& state : info.trainable ? states : std::vector<std::string>())
      specs.push_back({optimizer_key(info.hf_name, state), info.shape, at::kFloat});
  return specs;
}

void validate_optimizer_state(const SafetensorsReader& reader, const std::vector<WeightInfo>& table,
                              const std::vector<std::string>& states) {
  std::map<std::string, std::vector<int64_t>> wanted;
  for (const TensorSpec& spec : optimizer_specs(table, states)) wanted[spec.name] = spec.shape;
  for (const auto& [key, shape] : wanted) {
    if (!reader.contains(key)) fail("{}: the optimizer state has no '{}': {}", reader.origin(), key, kForeign);
    const std::vector<int64_t>& stored = reader.entries().at(key).shape;
    if (stored != shape)
      fail("{}: '{}' has shape [{}], wanted [{}]", reader.origin(), key, fmt::join(stored, ", "),
           fmt::join(shape, ", "));
  }
  for (const auto& [key, stored] : reader.entries())
    if (!wanted.count(key))
      fail("{}: the optimizer state holds '{}', which this optimizer does not keep: {}", reader.origin(), key,
           kForeign);
}

}  // namespace hexad::modeling
