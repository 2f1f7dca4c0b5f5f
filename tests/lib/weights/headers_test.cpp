#include "lib/weights/headers.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "lib/tensorfile/safetensors_writer.hpp"
#include "tests/checkpoint/temp_folder.hpp"

namespace hexad::weights {
namespace {

using model::WeightInfo;
using tensorfile::DType;
using tensorfile::TensorSpec;
using Lines = std::vector<std::string>;

const std::vector<WeightInfo> kTable = {{"a", {2, 3}, "embed"}, {"b", {3}, "head"}};

// A folder with such tensors, whose values are zero.
struct Folder {
  TempFolder dir;
  explicit Folder(const std::vector<TensorSpec>& specs) {
    tensorfile::SafetensorsWriter writer(dir / "model.safetensors", specs);
    for (const TensorSpec& spec : specs) writer.write(spec.name, std::vector<std::byte>(spec.bytes()));
    writer.finish();
  }
  std::string file() const { return (dir / "model.safetensors").string(); }
  Lines notices(const std::vector<WeightInfo>& table = kTable) const {
    return open(dir.path(), model::ModelConfig(), table).notices;
  }
  std::string refusal(const model::ModelConfig& config = {}, const std::vector<WeightInfo>& table = kTable) const {
    try {
      open(dir.path(), config, table);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_CASE("complete weights pass; what the model does not use is a notice") {
  const Folder folder({{"a", DType::f32, {2, 3}},
                       {"b", DType::bf16, {3}},
                       {"lm_head.weight", DType::f32, {2, 3}},
                       {"model.rotary_emb.inv_freq", DType::f32, {4}},
                       {"vision.weight", DType::f32, {1}}});
  CHECK(folder.notices() == Lines{folder.file() + ": 'vision.weight' is not used by this model"});
}

TEST_CASE("layers beyond the model's, multi-token prediction, are left out in one line") {
  const Folder folder({{"model.layers.0.a", DType::f32, {2}},
                       {"model.layers.9.a", DType::f32, {2}},
                       {"model.layers.9.b", DType::f32, {2}},
                       {"model.layers.10.a", DType::f32, {2}},
                       {"model.layers.10.eh_proj.weight", DType::f32, {2}}});
  CHECK(folder.notices({{"model.layers.0.a", {2}, "layers.0"}, {"model.layers.9.a", {2}, "layers.9"}}) ==
        Lines{folder.file() + ": 'model.layers.9.b' is not used by this model",
              folder.dir.path().string() +
                  ": 2 weights of layers beyond the config's 10 (multi-token prediction) are left out"});
}

TEST_CASE("missing weights, other shapes and types are refused with file, got and wanted") {
  const Folder lacks({{"b", DType::f32, {3}}}), other({{"a", DType::f32, {3, 2}}, {"b", DType::f32, {3}}});
  CHECK(lacks.refusal() == lacks.dir.path().string() + ": 1 of 2 weights are missing: a");
  CHECK(other.refusal() == other.file() + ": 'a' has shape [3, 2], the config wants [2, 3]");
  const Folder whole({{"a", DType::i32, {2, 3}}, {"b", DType::f32, {3}}});
  CHECK(whole.refusal() == whole.file() + ": 'a' has dtype I32, wanted F32, BF16 or F16");
  const Folder eight({{"a", DType::f32, {2, 3}}, {"b", DType::f32, {3}}, {"c", DType::f8_e4m3, {8}}});
  CHECK(eight.refusal() == eight.file() +
                               ": tensor \"c\" has dtype F8_E4M3, wanted F32, BF16, F16, F64, I64, I32, "
                               "I16, I8, U8 or BOOL: take the model in bfloat16 or float32");
}

TEST_CASE("many missing weights are counted, and ten of them listed") {
  std::vector<WeightInfo> table;
  for (int i = 0; i < 12; ++i) table.push_back({"w" + std::to_string(i), {1}, "embed"});
  const Folder folder({{"x", DType::f32, {1}}});
  CHECK(folder.refusal({}, table) == folder.dir.path().string() +
                                         ": 12 of 12 weights are missing: w0, w1, w2, w3, w4, "
                                         "w5, w6, w7, w8, w9, ...");
}

TEST_CASE("a reward head may be missing, and is of its shape where it is there") {
  const std::vector<WeightInfo> table = {{"a", {2, 3}, "embed"}, {model::kScoreName, {1, 3}, "head"}};
  CHECK(Folder({{"a", DType::f32, {2, 3}}}).refusal({}, table) == "");
  const Folder wide({{"a", DType::f32, {2, 3}}, {model::kScoreName, DType::f32, {2, 3}}});
  CHECK(wide.refusal({}, table) == wide.file() + ": 'score.weight' has shape [2, 3], the config wants [1, 3]");
}

TEST_CASE("weights that cannot be read are called quantised where config.json says so") {
  const Folder folder({{"a", DType::f32, {3, 2}}, {"b", DType::f32, {3}}});
  const std::string plain = folder.refusal(), name = folder.dir.path().string();
  model::ModelConfig config;
  config.original = {{"quantization_config", {{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}}}};
  CHECK(
      folder.refusal(config) ==
      name +
          ": the weights are quantized (config.json: bitsandbytes, 4 bits), and weights are read in float32, bfloat16 "
          "or float16 alone. Take the model that this one was made of, or restore it in Python: "
          "AutoModelForCausalLM.from_pretrained('" +
          name + "').dequantize().save_pretrained('<directory>') (" + plain + ")");
  CHECK(Folder({{"a", DType::f32, {2, 3}}, {"b", DType::f32, {3}}}).refusal(config) == "");  // plain ones beside it
}

TEST_CASE("a folder without weights is told what it holds, or how to start") {
  const TempFolder dir;
  CHECK_FALSE(are_in(dir.path()));
  const std::string begin =
      "'" + dir.path().string() + "': found neither model.safetensors nor model.safetensors.index.json; ";
  CHECK(absent(dir.path()) ==
        begin + "to start from random weights, made from its config.json, set policy.random_init_seed");
  dir.write("adapter_config.json", "{}");
  dir.write("adapter_model.safetensors", "");
  CHECK(absent(dir.path()).starts_with(begin + "it holds "));
}

}  // namespace
}  // namespace hexad::weights
