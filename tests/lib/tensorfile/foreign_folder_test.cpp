// Folders that hold no plain weights of a text model are called what they are.
#include "lib/tensorfile/foreign_folder.hpp"

#include <doctest/doctest.h>

#include <span>

#include "lib/base/error.hpp"
#include "lib/tensorfile/safetensors_header.hpp"
#include "tests/checkpoint/temp_folder.hpp"

namespace {

using namespace hexad::tensorfile;
using nlohmann::json;

// other_weights of a folder with these files, whose path is written as DIR.
std::string other(const std::vector<std::string>& names, const std::string& adapter = "{}") {
  const TempFolder folder;
  for (const std::string& name : names) folder.write(name, name == "adapter_config.json" ? adapter : "");
  std::string text = other_weights(folder.path());
  for (size_t at; (at = text.find(folder.path().string())) != std::string::npos;)
    text.replace(at, folder.path().string().size(), "DIR");
  return text;
}

}  // namespace

TEST_CASE("how config.json says that weights are quantised") {
  const auto of = [](const json& config) { return quantization_of({{"quantization_config", config}}); };
  CHECK(of({{"quant_method", "gptq"}, {"bits", 4}}) == "gptq, 4 bits");
  CHECK(of({{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}}) == "awq, 4 bits");
  CHECK(of({{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}, {"load_in_8bit", false}}) ==
        "bitsandbytes, 4 bits");
  CHECK(of({{"load_in_8bit", true}}) == "bitsandbytes, 8 bits");
  CHECK(of({{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}) == "fp8");
  CHECK(of({{"quant_method", "compressed-tensors"}, {"format", "pack-quantized"}}) == "compressed-tensors");
  CHECK(of({{"bits", "four"}}) == "of no stated method");
  CHECK(quantization_of({{"compression_config", {{"quant_method", "compressed-tensors"}}}}) == "compressed-tensors");
  CHECK(quantization_of({{"quantization", {{"group_size", 64}, {"bits", 4}}}}) == "MLX, 4 bits");
  CHECK(of(json::object()).empty());
  CHECK(of(nullptr).empty());
  CHECK(quantization_of(json::array()).empty());
  CHECK(
      quantized_text("m", "config.json: gptq, 4 bits") ==
      "m: the weights are quantized (config.json: gptq, 4 bits), and weights are read in float32, bfloat16 or float16 "
      "alone. Take the model that this one was made of, or restore it in Python: "
      "AutoModelForCausalLM.from_pretrained('m').dequantize().save_pretrained('<directory>')");
}

TEST_CASE("files beside config.json that say that weights are quantised") {
  const auto beside = [](const std::string& name, const std::string& content) {
    const TempFolder folder;
    folder.write(name, content);
    return quantization_beside(folder.path());
  };
  CHECK(beside("hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8"}})") == "hf_quant_config.json: FP8");
  CHECK(beside("quantize_config.json", R"({"bits": 4, "group_size": 128})") ==
        "quantize_config.json: of no stated method, 4 bits");
  CHECK(beside("quant_config.json", "[") == "quant_config.json: of no stated method");
  CHECK(beside("config.json", "{}").empty());
}

TEST_CASE("checkpoints and exports of other programs are called what they are") {
  CHECK(other({"model_world_size_2_rank_0.pt"}).starts_with("it holds model_world_size_2_rank_0.pt, a rank's part of"));
  CHECK(other({"__0_0.distcp", ".metadata"}).starts_with("it holds __0_0.distcp: a part of a distributed checkpoint"));
  CHECK(other({"model.onnx"}) ==
        "it holds model.onnx: a graph of ONNX's. Take the model that was exported, as safetensors");
  CHECK(other({"openvino_model.bin", "openvino_model.xml"}).starts_with("it holds openvino_model.bin: weights of"));
  CHECK(other({"latest", "zero_to_fp32.py"}).find("python zero_to_fp32.py . <directory>") != std::string::npos);
  CHECK(other({"latest_checkpointed_iteration.txt"}).find("in the parts of its ranks") != std::string::npos);
  CHECK(other({"model.safetensors.incomplete"}) ==
        "it holds model.safetensors.incomplete: a download that has not ended. Start it again");
  CHECK(other({"model.nemo"}).starts_with("it holds model.nemo: an archive of NeMo's"));
  CHECK(other({"model_index.json"}).starts_with("it holds model_index.json: a pipeline of diffusers'"));
}

TEST_CASE("a pointer of Git LFS is no file of weights, and called a pointer") {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
  CHECK_THROWS_WITH_AS(parse_safetensors_header(std::as_bytes(std::span(pointer)), "w"),
                       doctest::Contains("w: it is Git LFS's pointer to the file and not the file itself. Fetch it"),
                       hexad::Error);
}

TEST_CASE("what a folder has in the place of safetensors") {
  CHECK(
      other({"adapter_config.json", "adapter_model.safetensors"},
            R"({"peft_type": "LORA", "base_model_name_or_path": "x/y"})") ==
      "it holds an adapter of PEFT's (LORA; adapter_config.json), the difference to a base model (x/y). Merge the two "
      "in Python: PeftModel.from_pretrained(base, 'DIR').merge_and_unload().save_pretrained('<directory>')");
  CHECK(other({"adapter_config.json"}, "broken").starts_with("it holds an adapter of PEFT's (of no stated kind;"));
  CHECK(
      other({"config.json", "pytorch_model-00001-of-00002.bin", "pytorch_model.bin.index.json", "training_args.bin"}) ==
      "it holds pytorch_model-00001-of-00002.bin, which is Python's pickle: reading it can run any program, so it is "
      "not read here. Save the model as safetensors in Python: "
      "AutoModelForCausalLM.from_pretrained('DIR').save_pretrained('<directory>')");
  CHECK(other({"consolidated.00.pth"}).starts_with("it holds consolidated.00.pth, which is Python's pickle"));
  CHECK(other({"m.gguf"}) == "it holds m.gguf. Convert it once: hexad convert DIR/m.gguf <directory>");
  CHECK(other({"tf_model.h5"}).starts_with("it holds tf_model.h5, weights of TensorFlow. An older transformers"));
  CHECK(other({"flax_model.msgpack"}).find("from_flax=True") != std::string::npos);
  CHECK(other({"consolidated.safetensors"}).starts_with("it holds consolidated.safetensors, and is no folder as"));
  CHECK(other({"config.json", "training_args.bin", "optimizer.pt", "vocab.json"}).empty());
  CHECK(other_weights("/nowhere").empty());
}
