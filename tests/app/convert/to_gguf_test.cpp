// Folders of models into GGUF files and back: the same weights, texts and configuration.
#include "app/convert/to_gguf.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include <nlohmann/json.hpp>

#include "app/convert/gguf.hpp"
#include "app/convert/huggingface_config.hpp"
#include "lib/base/error.hpp"
#include "lib/tensorfile/safetensors.hpp"
#include "tests/app/convert/tiny_folder.hpp"
#include "tests/support/report.hpp"
#include "tests/support/small_disk.hpp"

using namespace hexad;
using namespace hexad::convert;
using tensorfile::DType;
using tensorfile::Gguf;
using tensorfile::GgufType;
namespace fs = std::filesystem;

namespace {

// Every tensor of `folder` is that of `other`, bit for bit.
void check_same_weights(const fs::path& folder, const fs::path& other) {
  const auto one = tensorfile::Safetensors::open(folder), two = tensorfile::Safetensors::open(other);
  CHECK(one.tensors().size() == two.tensors().size());
  for (const tensorfile::SafetensorsEntry& entry : one.tensors()) {
    CAPTURE(entry.name);
    const tensorfile::SafetensorsEntry& same = two.at(entry.name);
    CHECK(entry.dtype == same.dtype);
    CHECK(entry.shape == same.shape);
    CHECK(std::ranges::equal(entry.data, same.data));
  }
}

nlohmann::json plain(const Json& config) { return nlohmann::json(config); }  // without an order of keys

void check_refusal(const TempFolder& folder, const std::string& message, const ConvertOptions& options = {}) {
  CAPTURE(message);
  CHECK_THROWS_WITH_AS(convert::convert(folder / "in", folder / "m.gguf", options), doctest::Contains(message.c_str()),
                       Error);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"in"});  // nothing half-written stays
}

void check_config_refusal(Json config, const char* key, const Json& value, const std::string& message) {
  config[key] = value;
  CAPTURE(message);
  CHECK_THROWS_WITH_AS(known_config(config, "config.json"), doctest::Contains(("config.json: " + message).c_str()),
                       Error);
}

}  // namespace

TEST_CASE("each family there and back: the same bits, and a config.json that says the same") {
  for (const std::string& type : tiny_types()) {
    for (const DType dtype : {DType::bf16, DType::f16}) {
      CAPTURE(type);
      TempFolder folder;
      const Json config = write_tiny_folder(folder / "in", type, dtype);
      const ConvertResult result = convert::convert(folder / "in", folder / "m.gguf", {.dtype = dtype});
      CHECK(result.from == "huggingface");
      CHECK(result.notes.empty());
      CHECK(result.tensors == Gguf::open(folder / "m.gguf").tensors().size());
      convert::convert(folder / "m.gguf", folder / "back", {.dtype = dtype});
      check_same_weights(folder / "in", folder / "back");
      Json back = Json::parse(::read_file(folder / "back/config.json"));
      CHECK(back["bos_token_id"] == config["bos_token_id"]);
      CHECK(back["eos_token_id"] == config["eos_token_id"]);
      CHECK(back["torch_dtype"] == tensorfile::torch_name(dtype));
      Json wanted = known_config(config, "in");
      if (type == "mistral") wanted["model_type"] = "llama", wanted["architectures"] = {"LlamaForCausalLM"};
      if (type == "mistral") wanted["attention_bias"] = wanted["mlp_bias"] = false;
      CHECK(plain(known_config(back, "back")) == plain(wanted));
    }
  }
}

TEST_CASE("what llama.cpp reads: keys and their types, norms and routers in float32, experts in one tensor") {
  TempFolder folder;
  write_tiny_folder(folder / "in", "qwen2_moe", DType::f32);
  convert::convert(folder / "in", folder / "m.gguf");
  const Gguf gguf = Gguf::open(folder / "m.gguf");
  CHECK(gguf.get<std::string>("general.architecture") == "qwen2moe");
  CHECK(gguf.get<std::string>("general.name") == "in");
  CHECK(gguf.get<int64_t>("general.file_type") == 32);
  CHECK(gguf.get<int64_t>("qwen2moe.block_count") == 2);
  CHECK(gguf.get<int64_t>("qwen2moe.expert_count") == 4);
  CHECK(gguf.get<int64_t>("qwen2moe.expert_used_count") == 2);
  CHECK(gguf.get<int64_t>("qwen2moe.expert_feed_forward_length") == 32);
  CHECK(gguf.get<int64_t>("qwen2moe.expert_shared_feed_forward_length") == 64);
  CHECK(gguf.get<int64_t>("qwen2moe.attention.value_length") == 16);
  CHECK(gguf.get<double>("qwen2moe.rope.freq_base") == 1e6);
  CHECK(gguf.get<double>("qwen2moe.attention.layer_norm_rms_epsilon") == 1e-6);
  const auto is = [&](const char* name, GgufType type, std::vector<int64_t> shape) {
    const tensorfile::GgufTensor* tensor = gguf.find(name);
    CAPTURE(name);
    REQUIRE(tensor != nullptr);
    CHECK(tensor->type == type);
    CHECK(tensor->shape == shape);
  };
  is("token_embd.weight", GgufType::bf16, {kTinyRows, 32});
  is("blk.0.attn_q.bias", GgufType::f32, {32});
  is("blk.1.ffn_norm.weight", GgufType::f32, {32});
  is("blk.0.ffn_gate_inp.weight", GgufType::f32, {4, 32});
  is("blk.0.ffn_gate_inp_shexp.weight", GgufType::f32, {1, 32});
  is("blk.1.ffn_down_exps.weight", GgufType::bf16, {4, 32, 32});
  is("blk.1.ffn_up_shexp.weight", GgufType::bf16, {64, 32});
  // Of the third expert, the rows of the file are the model's.
  const auto model = tensorfile::Safetensors::open(folder / "in");
  const auto third = tensorfile::to_float32(model.at("model.layers.1.mlp.experts.2.down_proj.weight"));
  const auto all = tensorfile::dequantize(*gguf.find("blk.1.ffn_down_exps.weight"));
  for (size_t i = 0; i < third.size(); ++i)
    CHECK(all[2 * third.size() + i] == tensorfile::bf16_to_float(tensorfile::float_to_bf16(third[i])));
}

TEST_CASE("a llama's q and k are in llama.cpp's rotary order: neighbours there are halves here") {
  TempFolder folder;
  write_tiny_folder(folder / "in", "llama", DType::f32);
  convert::convert(folder / "in", folder / "m.gguf", {.dtype = DType::f32});
  const Gguf gguf = Gguf::open(folder / "m.gguf");
  const auto model = tensorfile::Safetensors::open(folder / "in");
  for (const auto& [name, stored, heads] : {std::tuple("q", "attn_q", 2), std::tuple("k", "attn_k", 1)}) {
    const auto rows = tensorfile::to_float32(model.at(fmt::format("model.layers.1.self_attn.{}_proj.weight", name)));
    const auto file = tensorfile::dequantize(*gguf.find(fmt::format("blk.1.{}.weight", stored)));
    for (int head = 0; head < heads; ++head)
      for (int pair = 0; pair < 8; ++pair)
        for (int half = 0; half < 2; ++half)
          for (int column = 0; column < 32; ++column)
            CHECK(file[(head * 16 + 2 * pair + half) * 32 + column] ==
                  rows[(head * 16 + half * 8 + pair) * 32 + column]);
  }
  const auto v = tensorfile::to_float32(model.at("model.layers.1.self_attn.v_proj.weight"));
  CHECK(tensorfile::dequantize(*gguf.find("blk.1.attn_v.weight")) == v);
}

TEST_CASE("Q8_0: blocks of the rows, and float16 with a note where rows do not divide into them") {
  TempFolder folder;
  write_tiny_folder(folder / "in", "qwen3", DType::f32);
  CHECK(convert::convert(folder / "in", folder / "m.gguf", {.q8_0 = true}).notes.empty());
  const Gguf gguf = Gguf::open(folder / "m.gguf");
  CHECK(gguf.get<int64_t>("general.file_type") == 7);
  CHECK(gguf.find("blk.0.attn_q_norm.weight")->type == GgufType::f32);
  const auto model = tensorfile::Safetensors::open(folder / "in");
  const auto values = tensorfile::to_float32(model.at("model.layers.0.mlp.up_proj.weight"));
  const tensorfile::GgufTensor& up = *gguf.find("blk.0.ffn_up.weight");
  CHECK(up.type == GgufType::q8_0);
  const auto back = tensorfile::dequantize(up);
  REQUIRE(back.size() == values.size());
  for (size_t begin = 0; begin < values.size(); begin += 32) {
    float most = 0;
    for (size_t i = begin; i < begin + 32; ++i) most = std::max(most, std::abs(values[i]));
    for (size_t i = begin; i < begin + 32; ++i)
      CHECK(std::abs(back[i] - values[i]) <= most / 127 * 0.57f);  // half a step, and what fp16 makes of 127 steps
  }
  fs::remove_all(folder / "in"), fs::remove(folder / "m.gguf");
  write_tiny_folder(folder / "in", "qwen3", DType::f32, {{"intermediate_size", 48}});
  const ConvertResult odd = convert::convert(folder / "in", folder / "m.gguf", {.q8_0 = true});
  REQUIRE(odd.notes.size() == 1);
  CHECK(odd.notes[0] ==
        "2 of 24 tensors have rows that do not divide into blocks of 32 values, and are stored as float16");
  CHECK(Gguf::open(folder / "m.gguf").find("blk.1.ffn_down.weight")->type == GgufType::f16);
  convert::convert(folder / "m.gguf", folder / "back");  // and it can be read
}

TEST_CASE("blocks that become values and blocks again are the same file") {
  TempFolder folder;
  write_tiny_folder(folder / "in", "qwen3_moe", DType::f32);
  convert::convert(folder / "in", folder / "once.gguf", {.q8_0 = true});
  convert::convert(folder / "once.gguf", folder / "back/in");
  convert::convert(folder / "back/in", folder / "twice.gguf", {.q8_0 = true});
  CHECK(::read_file(folder / "once.gguf") == ::read_file(folder / "twice.gguf"));
}

TEST_CASE("SmolLM2 through GGUF: its texts, its configuration, and weights as near as blocks are") {
  const char* dir = std::getenv("HEXAD_SMOLLM2_DIR");  // what a conversion has made of a GGUF file
  if (!dir) {
    test_report::skipped("HEXAD_SMOLLM2_DIR names no directory with SmolLM2-135M-Instruct");
    return;
  }
  TempFolder folder;
  const auto first = tensorfile::Safetensors::open(dir);
  convert::convert(dir, folder / "m.gguf", {.q8_0 = true});
  convert::convert(folder / "m.gguf", folder / "second", {.dtype = first.tensors().at(0).dtype});
  for (const char* file : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}) {
    CAPTURE(file);
    CHECK(::read_file(fs::path(dir) / file) == ::read_file(folder / "second" / file));
  }
  const auto second = tensorfile::Safetensors::open(folder / "second");
  for (const tensorfile::SafetensorsEntry& entry : first.tensors()) {
    CAPTURE(entry.name);
    const auto was = tensorfile::to_float32(entry), is = tensorfile::to_float32(second.at(entry.name));
    REQUIRE(is.size() == was.size());
    double difference = 0, size = 0;
    for (size_t i = 0; i < was.size(); ++i) difference += std::pow(is[i] - was[i], 2), size += std::pow(was[i], 2);
    CHECK(difference <= 1e-4 * size);  // one part in a hundred
  }
}

TEST_CASE("without a dtype: float16 of float16, bfloat16 of all others") {
  for (const auto& [dtype, wanted] : {std::pair(DType::f16, 1), {DType::bf16, 32}, {DType::f32, 32}}) {
    TempFolder folder;
    write_tiny_folder(folder / "in", "llama", dtype);
    convert::convert(folder / "in", folder / "m.gguf");
    CHECK(Gguf::open(folder / "m.gguf").get<int64_t>("general.file_type") == wanted);
  }
}

TEST_CASE("rope scalings there and back") {
  const Json linear = {{"rope_type", "linear"}, {"factor", 4.0}};
  const Json yarn = {{"rope_type", "yarn"},
                     {"factor", 4.0},
                     {"original_max_position_embeddings", 64},
                     {"beta_fast", 32.0},
                     {"beta_slow", 1.0}};
  const Json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 8192}};
  for (const Json& scaling : {linear, yarn, llama3}) {
    CAPTURE(scaling.dump());
    TempFolder folder;
    write_tiny_folder(folder / "in", "llama", DType::bf16, {{"rope_scaling", scaling}, {"rope_theta", 500000.0}});
    convert::convert(folder / "in", folder / "m.gguf");
    convert::convert(folder / "m.gguf", folder / "back", {.dtype = DType::bf16});
    CHECK(plain(Json::parse(::read_file(folder / "back/config.json"))["rope_scaling"]) == plain(scaling));
    check_same_weights(folder / "in", folder / "back");
  }
  Json both = tiny_config("llama");
  both["rope_parameters"] = nullptr, both["rope_scaling"] = linear;
  CHECK(known_config(both, "c")["rope_scaling"] == linear);
  // Transformers 5 writes all of it under another key, and older versions called the type "type".
  Json config = tiny_config("llama");
  config.erase("rope_theta");
  config["rope_parameters"] = {{"rope_theta", 250000.0}, {"rope_type", "default"}};
  CHECK(known_config(config, "c")["rope_theta"] == 250000.0);
  CHECK(known_config(config, "c")["rope_scaling"].is_null());
  config["rope_parameters"] = {{"rope_theta", 250000.0}, {"type", "yarn"}, {"factor", 2}};
  CHECK(known_config(config, "c")["rope_scaling"] ==
        Json{{"rope_type", "yarn"}, {"factor", 2.0}, {"original_max_position_embeddings", 128}});
}

TEST_CASE("configurations that llama.cpp's architectures have not") {
  const Json llama = tiny_config("llama"), qwen = tiny_config("qwen2"), moe = tiny_config("qwen3_moe");
  check_config_refusal(
      llama, "model_type", "deepseek_v3",
      "model_type \"deepseek_v3\" cannot be written as GGUF; known are llama, mistral, mixtral, qwen2, "
      "qwen2_moe, qwen3, qwen3_moe");
  check_config_refusal(llama, "hidden_act", "gelu", "\"hidden_act\" is \"gelu\", and llama.cpp has silu for llama");
  check_config_refusal(llama, "hidden_size", nullptr, "\"hidden_size\" is missing");
  check_config_refusal(llama, "hidden_size", -1, "\"hidden_size\" is -1, wanted a positive number up to 2147483647");
  check_config_refusal(llama, "num_hidden_layers", "2", "\"num_hidden_layers\" is \"2\", wanted a positive number");
  check_config_refusal(llama, "head_dim", 15, "2 attention heads, 1 key/value heads of size 15: heads must be");
  check_config_refusal(llama, "rope_theta", 0, "\"rope_theta\" is 0, wanted a positive number");
  check_config_refusal(llama, "mlp_bias", 1, "\"mlp_bias\" is 1, wanted true or false");
  check_config_refusal(llama, "partial_rotary_factor", 0.5, "\"partial_rotary_factor\" is 0.5, wanted 1");
  check_config_refusal(llama, "rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}},
                       "\"partial_rotary_factor\" is 0.5, wanted 1");
  check_config_refusal(llama, "quantization_config", {{"quant_method", "gptq"}, {"bits", 4}},
                       "its weights are quantised (gptq, 4 bits): take the folder that they were made from");
  check_config_refusal(tiny_config("mistral"), "sliding_window", 64,
                       "\"sliding_window\" is 64, and llama.cpp has none for mistral: it would answer otherwise behind "
                       "that many tokens");
  check_config_refusal(qwen, "layer_types", {"full_attention", "sliding_attention"}, "\"sliding_window\" is null");
  check_config_refusal(moe, "norm_topk_prob", false,
                       "\"norm_topk_prob\" is false, and llama.cpp has true for qwen3_moe");
  check_config_refusal(moe, "decoder_sparse_step", 2, "some layers have no experts (\"decoder_sparse_step\"");
  check_config_refusal(moe, "mlp_only_layers", {0}, "some layers have no experts (\"decoder_sparse_step\"");
  check_config_refusal(moe, "num_experts_per_tok", 5, "\"num_experts_per_tok\" is above the number of experts, 4");
  check_config_refusal(tiny_config("qwen2_moe"), "qkv_bias", false,
                       "\"qkv_bias\" is false, and llama.cpp wants biases");
  check_config_refusal(llama, "rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}},
                       "rope_scaling is of rope_type \"dynamic\", and llama.cpp's architecture llama has default, "
                       "linear, yarn and llama3");
  check_config_refusal(qwen, "rope_scaling", {{"rope_type", "linear"}, {"factor", -1}},
                       "rope_scaling.factor is -1, wanted a positive number");
  check_config_refusal(qwen, "rope_scaling", {{"rope_type", "linear"}, {"factor", 2}, {"mscale", 1}},
                       "rope_scaling.mscale is 1: GGUF has no key for it");
  check_config_refusal(qwen, "rope_scaling", "linear", "rope_scaling is no object with a rope_type");
  // A window that no text reaches, or that is switched off, is none.
  Json wide = tiny_config("mistral");
  wide["sliding_window"] = 128;
  CHECK(known_config(wide, "c")["model_type"] == "mistral");
  Json off = qwen;
  off["sliding_window"] = 16, off["use_sliding_window"] = false;
  CHECK(known_config(off, "c")["model_type"] == "qwen2");
}

TEST_CASE("weights that make no model, or cannot be stored") {
  TempFolder folder;
  write_tiny_folder(folder / "in", "llama", DType::f32, {}, {.without = "model.layers.1.mlp.up_proj.weight"});
  check_refusal(folder, "model.layers.1.mlp.up_proj.weight");
  write_tiny_folder(folder / "in", "llama", DType::f32, {}, {.extra = "model.layers.0.self_attn.rot.weight"});
  check_refusal(
      folder, "in: tensor \"model.layers.0.self_attn.rot.weight\" belongs to no part of a llama model, as GGUF has it");
  write_tiny_folder(folder / "in", "llama", DType::f32, {}, {.value = 1e5f});
  check_refusal(folder,
                "in: tensor \"model.embed_tokens.weight\" holds 100000 at element 37, too large for float16: "
                "choose bfloat16 or float32",
                {.dtype = DType::f16});
  write_tiny_folder(folder / "in", "llama", DType::f32, {}, {.value = std::numeric_limits<float>::quiet_NaN()});
  check_refusal(folder, "in: tensor \"model.embed_tokens.weight\" holds nan at element 37: the weights are broken");
  write_tiny_folder(folder / "in", "llama", DType::f32);
  Json config = tiny_config("llama");
  config["intermediate_size"] = 32;
  folder.write("in/config.json", config.dump());
  check_refusal(folder,
                "in: tensor \"model.layers.0.mlp.gate_proj.weight\" has shape [64, 32], config.json wants [32, "
                "32]");
  for (const auto& [type, key, says] : std::vector<std::tuple<const char*, const char*, const char*>>{
           {"llama", "num_hidden_layers", "in: config.json announces 2000000000 layers, and there are "},
           {"qwen3_moe", "num_experts", "in: config.json announces 2 layers of 2000000000 experts, and there are "}}) {
    write_tiny_folder(folder / "in", type, DType::f32);
    config = tiny_config(type);
    config[key] = 2000000000;
    folder.write("in/config.json", config.dump());
    check_refusal(folder, says);
  }
  folder.write("in/quantize_config.json", R"({"bits": 4, "quant_method": "gptq"})");
  check_refusal(folder, "quantize_config.json");
}

TEST_CASE("where the file appears") {
  TempFolder folder;
  write_tiny_folder(folder / "in", "llama", DType::f32);
  convert::convert(folder / "in", folder / "sub/m.gguf");
  CHECK(names_in(folder / "sub") == std::vector<std::string>{"m.gguf"});
  CHECK(::read_file(folder / "sub/m.gguf").starts_with("GGUF"));
  const auto refused = [&](const fs::path& source, const fs::path& destination, const char* message,
                           const ConvertOptions& options = {}) {
    CHECK_THROWS_WITH_AS(convert::convert(source, destination, options), doctest::Contains(message), Error);
  };
  refused(folder / "in", folder / "sub/m.gguf", "sub/m.gguf: exists already; nothing was written");
  fs::create_symlink("precious", folder / "sub/l.gguf");
  refused(folder / "in", folder / "sub/l.gguf", "sub/l.gguf: exists already; nothing was written");
  fs::create_directory(folder / "sub/d.gguf");
  refused(folder / "in", folder / "sub/d.gguf", "sub/d.gguf: exists already; nothing was written");
  refused(folder / "sub/m.gguf", folder / "n.gguf", "n.gguf would be one too: convert it into a folder first");
  refused(folder / "in", folder / "out", "out: q8_0 is a type of GGUF files alone: name a file that ends in .gguf",
          {.q8_0 = true});
  convert::convert(folder / "in", folder / "sub/folder.gguf/");  // a folder was asked for
  CHECK(fs::exists(folder / "sub/folder.gguf/config.json"));
  CHECK(names_in(folder / "sub") == std::vector<std::string>{"d.gguf", "folder.gguf", "l.gguf", "m.gguf"});
}

TEST_CASE("a full disk is told of, and leaves nothing") {
  TempFolder folder;
  write_tiny_folder(folder / "in", "llama", DType::f32);
  const SmallDisk disk(folder / "disk", size_t{32} << 10);
  if (!disk) {
    test_report::skipped("no privilege to mount a small disk");
    return;
  }
  CHECK_THROWS_WITH_AS(convert::convert(folder / "in", folder / "disk/m.gguf"),
                       doctest::Contains("cannot be written: No space left on device"), Error);
  CHECK(names_in(folder / "disk").empty());
}

TEST_CASE("a checkpoint of a run: the tokenizer of its own folder") {
  TempFolder folder;
  write_tiny_folder(folder / "step_2/policy/weights", "qwen2", DType::f32);
  fs::create_directories(folder / "step_2/policy/tokenizer");
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    fs::rename(folder / "step_2/policy/weights" / name, folder / "step_2/policy/tokenizer" / name);
  CHECK(convert::convert(folder / "step_2", folder / "m.gguf").from == "checkpoint");
  CHECK(Gguf::open(folder / "m.gguf").get<std::string>("tokenizer.ggml.pre") == "qwen2");
  CHECK(Gguf::open(folder / "m.gguf").get<std::string>("general.name") == "step_2");
  CHECK_THROWS_WITH_AS(convert::convert(folder / "step_2/policy/weights", folder / "n.gguf"),
                       doctest::Contains("tokenizer.json"), Error);
}
