#include "lib/tensorfile/foreign_folder.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/json.hpp"

namespace hexad::tensorfile {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool is_set(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code absent;
  if (!fs::is_directory(folder, absent)) return names;
  for (const fs::directory_entry& entry : entries_of(folder)) names.push_back(entry.path().filename().string());
  return names;
}

std::string adapter_text(const fs::path& folder) {
  json config;
  try {
    config = try_parse_json<json>(read_file(folder / "adapter_config.json"));
  } catch (const Error&) {  // it cannot be read: the name of the file says enough
  }
  const std::string kind = config.is_object() ? text_at(config, "peft_type") : "";
  const std::string base = config.is_object() ? text_at(config, "base_model_name_or_path") : "";
  return fmt::format(
      "it holds an adapter of PEFT's ({}; adapter_config.json), the difference to a base model{}. Merge the two in "
      "Python: PeftModel.from_pretrained(base, '{}').merge_and_unload().save_pretrained('<directory>')",
      kind.empty() ? "of no stated kind" : kind, base.empty() ? "" : " (" + base + ")", folder.string());
}

bool is_pickle(const std::string& name) {
  const bool named = name.starts_with("pytorch_model") || name.starts_with("consolidated") || name.starts_with("model");
  const bool ends =
      name.ends_with(".bin") || name.ends_with(".bin.index.json") || name.ends_with(".pth") || name.ends_with(".pt");
  return named && ends;
}

}  // namespace

std::string quantization_of(const json& config) {
  if (!config.is_object()) return "";
  for (const char* key : {"quantization_config", "compression_config", "quantization"}) {  // the last is MLX's
    const auto found = config.find(key);
    if (found == config.end() || !found->is_object() || found->empty()) continue;
    std::string result = text_at(*found, "quant_method");
    if (result.empty()) result = text_at(*found, "quant_algo");
    if (result.empty() && key == std::string_view("quantization") && found->contains("group_size")) result = "MLX";
    const bool four = is_set(*found, "load_in_4bit"), eight = is_set(*found, "load_in_8bit");
    if (result.empty()) result = four || eight ? "bitsandbytes" : "of no stated method";
    if (four || eight)
      result += four ? ", 4 bits" : ", 8 bits";
    else if (const auto stated = found->find("bits"); stated != found->end() && stated->is_number_integer())
      result += fmt::format(", {} bits", stated->get<int64_t>());
    return result;
  }
  return "";
}

std::string quantization_beside(const fs::path& folder) {
  for (const char* name : {"hf_quant_config.json", "quantize_config.json", "quant_config.json"}) {
    std::error_code unreadable;
    if (!fs::exists(folder / name, unreadable)) continue;
    try {
      const json config = try_parse_json<json>(read_file(folder / name));
      std::string result = quantization_of(config);
      if (result.empty()) result = quantization_of({{"quantization_config", config}});
      return fmt::format("{}: {}", name, result.empty() ? "of no stated method" : result);
    } catch (const Error&) {  // it cannot be read: the name of the file says enough
      return fmt::format("{}: of no stated method", name);
    }
  }
  return "";
}

std::string quantized_text(const fs::path& folder, const std::string& quantization) {
  return fmt::format(
      "{0}: the weights are quantized ({1}), and weights are read in float32, bfloat16 or float16 alone. "
      "Take the model that this one was made of, or restore it in Python: "
      "AutoModelForCausalLM.from_pretrained('{0}').dequantize().save_pretrained('<directory>')",
      folder.string(), quantization);
}

std::string other_weights(const fs::path& folder) {
  const std::vector<std::string> names = names_in(folder);
  const auto first = [&](auto is) {
    const auto found = std::ranges::find_if(names, is);
    return found == names.end() ? std::string() : *found;
  };
  const auto ends = [&](const char* end) {
    return first([=](const std::string& name) { return name.ends_with(end); });
  };
  if (std::ranges::binary_search(names, std::string("adapter_config.json"))) return adapter_text(folder);
  if (const std::string name = first([](const std::string& each) { return each.starts_with("model_world_size_"); });
      !name.empty())
    return fmt::format(
        "it holds {}, a rank's part of a checkpoint of verl's. Merge them: python -m verl.model_merger merge --backend "
        "fsdp --local_dir {} --target_dir <directory>",
        name, folder.string());
  if (const std::string name = first(is_pickle); !name.empty()) {
    return fmt::format(
        "it holds {}, which is Python's pickle: reading it can run any program, so it is not read here. Save the model "
        "as safetensors in Python: AutoModelForCausalLM.from_pretrained('{}').save_pretrained('<directory>')",
        name, folder.string());
  }
  if (const std::string name = ends(".gguf"); !name.empty())
    return fmt::format("it holds {0}. Convert it once: hexad convert {1} <directory>", name, (folder / name).string());
  for (const char* end : {".h5", ".msgpack"}) {
    if (const std::string name = ends(end); !name.empty())
      return fmt::format(
          "it holds {}, weights of {}. An older transformers (4) saves them as safetensors: "
          "AutoModelForCausalLM.from_pretrained('{}', {}=True).save_pretrained('<directory>')",
          name, end[1] == 'h' ? "TensorFlow" : "Flax", folder.string(), end[1] == 'h' ? "from_tf" : "from_flax");
  }
  struct Other {
    const char* end;
    const char* what;
  };
  constexpr Other kOthers[] = {
      {".onnx", "a graph of ONNX's. Take the model that was exported, as safetensors"},
      {"openvino_model.bin", "weights of OpenVINO's. Take the model that was exported, as safetensors"},
      {".distcp",
       "a part of a distributed checkpoint of PyTorch's. Merge it with the program that saved it, such as "
       "`torch.distributed.checkpoint.format_utils`, or `verl.model_merger` for verl's, into a folder as "
       "transformers saves it"},
      {".nemo", "an archive of NeMo's. Export it as a Hugging Face folder with NeMo"},
      {"zero_to_fp32.py",
       "a checkpoint of DeepSpeed's. Merge it: python zero_to_fp32.py . <directory> "
       "--safe_serialization"},
      {"latest_checkpointed_iteration.txt",
       "a checkpoint in the parts of its ranks. Export it as a Hugging Face folder with what saved it"},
      {".incomplete", "a download that has not ended. Start it again"},
      {"model_index.json", "a pipeline of diffusers', which writes no text"}};
  for (const Other& other : kOthers)
    if (const std::string name = ends(other.end); !name.empty())
      return fmt::format("it holds {}: {}", name, other.what);
  if (const std::string name = ends(".safetensors"); !name.empty())
    return fmt::format(
        "it holds {}, and is no folder as transformers saves it, where weights are in model.safetensors, or in the "
        "files that model.safetensors.index.json names",
        name);
  return "";
}

}  // namespace hexad::tensorfile
