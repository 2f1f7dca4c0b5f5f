// GGUF files into Hugging Face directories.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include <nlohmann/json.hpp>

#include "app/convert/convert.hpp"
#include "lib/base/error.hpp"
#include "lib/tensorfile/gguf.hpp"
#include "lib/tensorfile/safetensors.hpp"
#include "tests/app/convert/tiny_gguf.hpp"
#include "tests/checkpoint/temp_folder.hpp"

using namespace hexad;
using namespace hexad::convert;
using Json = nlohmann::ordered_json;

namespace {

// A file that was converted, and what became of it.
struct Converted {
  TempFolder folder;
  ConvertResult result;

  explicit Converted(const GgufFile& file, const ConvertOptions& options = {})
      : result(convert::convert(folder.write("m.gguf", file.bytes()), folder / "hf", options)) {}

  Json json(const char* name) const { return Json::parse(read_file(folder / "hf" / name)); }
  std::vector<float> values(const std::string& tensor) const {
    return tensorfile::to_float32(tensorfile::Safetensors::open(folder / "hf").at(tensor));
  }
  std::vector<float> stored(const char* tensor) const {
    return tensorfile::dequantize(*tensorfile::Gguf::open(folder / "m.gguf").find(tensor));
  }
};

void check_refusal(const GgufFile& file, const char* message, const ConvertOptions& options = {}) {
  TempFolder folder;
  const auto source = folder.write("m.gguf", file.bytes());
  CAPTURE(message);
  CHECK_THROWS_WITH_AS(convert::convert(source, folder / "hf", options),
                       doctest::Contains((source.string() + ": " + message).c_str()), Error);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"m.gguf"});  // nothing half-written stays
}

// Row i of a head in `rows` by llama.cpp's order: pairs of neighbours; by transformers': first half, second half.
std::vector<float> unpermuted(const std::vector<float>& rows, size_t heads, size_t head_dim, size_t columns) {
  std::vector<float> result;
  for (size_t head = 0; head < heads; ++head) {
    for (size_t i = 0; i < head_dim; ++i) {
      const size_t row = head * head_dim + (i < head_dim / 2 ? 2 * i : 2 * (i - head_dim / 2) + 1);
      result.insert(result.end(), rows.begin() + row * columns, rows.begin() + (row + 1) * columns);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("a llama: names, values, rotary order, tied head") {
  GgufFile file = tiny_gguf();
  file.tensor("token_embd.weight").type = GgufFile::Q8_0;
  file.tensor("token_embd.weight").data.clear();
  for (int row = 0; row < 6; ++row)
    file.tensor("token_embd.weight").data += raw<uint16_t>(0x3400) + std::string(32, static_cast<char>(row - 3));
  file.tensor("blk.0.attn_v.weight").type = GgufFile::Q4_1;
  file.tensor("blk.0.attn_v.weight").data.clear();
  for (int row = 0; row < 16; ++row) {
    file.tensor("blk.0.attn_v.weight").data +=
        raw<uint16_t>(0x3800) + raw<uint16_t>(0xbc00) + std::string(16, static_cast<char>(row | (15 - row) << 4));
  }
  file.tensor("blk.1.attn_v.weight").type = GgufFile::F16;
  file.tensor("blk.1.attn_v.weight").data = raw_list(std::vector<uint16_t>(16 * 32, 0xc100));
  const Converted out(file);
  CHECK(out.result.from == "gguf");
  CHECK(out.result.tensors == file.tensors.size());
  CHECK(out.result.bytes == 4 * out.result.parameters);
  CHECK(names_in(out.folder / "hf") == std::vector<std::string>{"config.json", "generation_config.json",
                                                                "model.safetensors", "tokenizer.json",
                                                                "tokenizer_config.json"});
  const tensorfile::Safetensors weights = tensorfile::Safetensors::open(out.folder / "hf");
  CHECK(weights.tensors().size() == file.tensors.size());
  CHECK(weights.find("lm_head.weight") == nullptr);
  const auto embedding = out.values("model.embed_tokens.weight");
  const auto v = out.values("model.layers.0.self_attn.v_proj.weight");
  for (int i = 0; i < 32; ++i) {
    CHECK(embedding[5 * 32 + i] == 0.5f);
    CHECK(embedding[i] == -0.75f);
    CHECK(v[3 * 32 + i] == 0.5f * (i < 16 ? 3 : 12) - 1);
  }
  CHECK(out.values("model.layers.1.self_attn.v_proj.weight") == std::vector<float>(16 * 32, -2.5f));
  CHECK(out.values("model.layers.0.self_attn.q_proj.weight") ==
        unpermuted(out.stored("blk.0.attn_q.weight"), 2, 16, 32));
  CHECK(out.values("model.layers.1.self_attn.k_proj.weight") ==
        unpermuted(out.stored("blk.1.attn_k.weight"), 1, 16, 32));
  const std::pair<const char*, const char*> plain[] = {
      {"input_layernorm", "attn_norm"}, {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
      {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"}};
  for (const auto& [name, gguf_name] : plain) {
    CAPTURE(name);
    CHECK(out.values(fmt::format("model.layers.1.{}.weight", name)) ==
          out.stored(fmt::format("blk.1.{}.weight", gguf_name).c_str()));
  }
  CHECK(out.values("model.norm.weight") == out.stored("output_norm.weight"));
  CHECK(weights.at("model.layers.0.mlp.down_proj.weight").shape == std::vector<int64_t>{32, 64});
}

TEST_CASE("the ends of turns and messages end generation too, each once") {
  GgufFile file = tiny_gguf();
  file.set_number("tokenizer.ggml.eot_token_id", 5);
  file.set_number("tokenizer.ggml.eom_token_id", 4);
  CHECK(Converted(file).json("generation_config.json") ==
        Json{{"bos_token_id", 4}, {"eos_token_id", Json::array({4, 5})}});
}

TEST_CASE("a llama's config.json, generation_config.json and tokenizer") {
  const Converted out(tiny_gguf());
  const Json config = out.json("config.json");
  const Json wanted = {{"architectures", {"LlamaForCausalLM"}},
                       {"model_type", "llama"},
                       {"bos_token_id", 4},
                       {"eos_token_id", 4},
                       {"hidden_act", "silu"},
                       {"hidden_size", 32},
                       {"intermediate_size", 64},
                       {"num_hidden_layers", 2},
                       {"num_attention_heads", 2},
                       {"num_key_value_heads", 1},
                       {"head_dim", 16},
                       {"max_position_embeddings", 128},
                       {"rms_norm_eps", 1e-5},
                       {"rope_theta", 100000.0},
                       {"rope_scaling", nullptr},
                       {"tie_word_embeddings", true},
                       {"vocab_size", 6},
                       {"attention_bias", false},
                       {"mlp_bias", false},
                       {"torch_dtype", "float32"}};
  CHECK(config == wanted);
  CHECK(out.json("generation_config.json") == Json{{"bos_token_id", 4}, {"eos_token_id", 4}});
  const Json tokenizer = out.json("tokenizer.json");
  CHECK(tokenizer["model"]["vocab"] == Json{{"a", 0}, {"b", 1}, {"ab", 2}, {"1", 3}, {"<s>", 4}, {"<u>", 5}});
  CHECK(tokenizer["model"]["merges"] == Json{"a b"});
  REQUIRE(tokenizer["added_tokens"].size() == 2);
  CHECK(tokenizer["added_tokens"][0]["content"] == "<s>");
  CHECK(tokenizer["added_tokens"][0]["special"] == true);
  CHECK(tokenizer["added_tokens"][1]["special"] == false);
  CHECK(tokenizer["pre_tokenizer"]["pretokenizers"][0] == Json{{"type", "Digits"}, {"individual_digits", true}});
  CHECK(tokenizer["post_processor"]["type"] == "ByteLevel");
  const Json text = out.json("tokenizer_config.json");
  CHECK(text["bos_token"] == "<s>");
  CHECK(text["chat_template"] == "{{ messages[0].content }}");
  CHECK(text["model_max_length"] == 128);
}

TEST_CASE("metadata that may be absent") {
  GgufFile file = tiny_gguf("llama", {.kv_heads = 2});
  for (const char* key : {"llama.attention.head_count_kv", "llama.attention.key_length", "llama.rope.freq_base",
                          "tokenizer.ggml.pre", "tokenizer.chat_template", "tokenizer.ggml.bos_token_id"}) {
    file.remove(key);
  }
  file.set_number("tokenizer.ggml.padding_token_id", 5);
  const Converted out(file);
  CHECK(out.json("config.json")["num_key_value_heads"] == 2);
  CHECK(out.json("config.json")["head_dim"] == 16);
  CHECK(out.json("config.json")["rope_theta"] == 10000.0);
  CHECK_FALSE(out.json("config.json").contains("bos_token_id"));
  CHECK(out.json("config.json")["pad_token_id"] == 5);
  CHECK(out.json("tokenizer_config.json")["pad_token"] == "<u>");
  CHECK_FALSE(out.json("tokenizer_config.json").contains("chat_template"));
}

TEST_CASE("a llama with biases: those of q and k are in rotary order too") {
  GgufFile file = tiny_gguf("llama", {.layers = 1});
  for (const auto& [name, rows] : {std::pair("attn_q", 32),
                                   {"attn_k", 16},
                                   {"attn_v", 16},
                                   {"attn_output", 32},
                                   {"ffn_gate", 64},
                                   {"ffn_up", 64},
                                   {"ffn_down", 32}}) {
    add_tiny_tensor(file, fmt::format("blk.0.{}.bias", name), {static_cast<uint64_t>(rows)});
  }
  const Converted out(file);
  CHECK(out.json("config.json")["attention_bias"] == true);
  CHECK(out.json("config.json")["mlp_bias"] == true);
  CHECK(out.values("model.layers.0.self_attn.q_proj.bias") == unpermuted(out.stored("blk.0.attn_q.bias"), 2, 16, 1));
  CHECK(out.values("model.layers.0.self_attn.v_proj.bias") == out.stored("blk.0.attn_v.bias"));
  CHECK(out.values("model.layers.0.mlp.down_proj.bias") == out.stored("blk.0.ffn_down.bias"));
}

TEST_CASE("qwen2 and qwen3: rows as they are, biases, q and k norms, a head of its own") {
  GgufFile file = tiny_gguf("qwen2");
  file.set_text("tokenizer.ggml.pre", "qwen2");
  add_tiny_tensor(file, "output.weight", {6, 32});
  const Converted two(file);
  CHECK(two.json("config.json")["architectures"] == Json{"Qwen2ForCausalLM"});
  CHECK(two.json("config.json")["tie_word_embeddings"] == false);
  CHECK(two.values("model.layers.0.self_attn.q_proj.weight") == two.stored("blk.0.attn_q.weight"));
  CHECK(two.values("model.layers.0.self_attn.k_proj.bias") == two.stored("blk.0.attn_k.bias"));
  CHECK(two.values("lm_head.weight") == two.stored("output.weight"));
  CHECK(two.json("tokenizer.json")["normalizer"] == Json{{"type", "NFC"}});
  const Converted three(tiny_gguf("qwen3"));
  CHECK(three.json("config.json")["architectures"] == Json{"Qwen3ForCausalLM"});
  CHECK(three.values("model.layers.1.self_attn.q_norm.weight") == three.stored("blk.1.attn_q_norm.weight"));
  CHECK(three.values("model.layers.1.self_attn.k_norm.weight") == three.stored("blk.1.attn_k_norm.weight"));
}

TEST_CASE("named pre-tokenizers; a beginning-of-text token when the file asks for it") {
  GgufFile file = tiny_gguf();
  file.set_text("tokenizer.ggml.pre", "llama-bpe");
  file.set_flag("tokenizer.ggml.add_bos_token", true);
  const Json tokenizer = Converted(file).json("tokenizer.json");
  CHECK(tokenizer["model"]["ignore_merges"] == true);
  const std::string pattern = tokenizer["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
  CHECK(pattern.find("\\p{N}{1,3}") != std::string::npos);
  const Json prepend = tokenizer["post_processor"]["processors"][1];
  CHECK(prepend["single"][0]["SpecialToken"]["id"] == "<s>");
  CHECK(prepend["special_tokens"]["<s>"]["ids"] == Json{4});
}

TEST_CASE("rope scaling: linear, yarn, Llama 3's divisors") {
  GgufFile file = tiny_gguf();
  file.set_text("llama.rope.scaling.type", "linear");
  file.set_real("llama.rope.scaling.factor", 4);
  CHECK(Converted(file).json("config.json")["rope_scaling"] == Json{{"rope_type", "linear"}, {"factor", 4.0}});
  file.set_text("llama.rope.scaling.type", "yarn");
  file.set_number("llama.rope.scaling.original_context_length", 64);
  CHECK(Converted(file).json("config.json")["rope_scaling"] ==
        Json{{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}});
  file.set_text("llama.rope.scaling.type", "none");
  CHECK(Converted(file).json("config.json")["rope_scaling"].is_null());
  file.set_text("llama.rope.scaling.type", "longrope");
  check_refusal(file, "metadata \"llama.rope.scaling.type\" is \"longrope\", known are none, linear, yarn");
  file.set_text("llama.rope.scaling.type", "linear");
  file.set_real("llama.rope.scaling.factor", 0);
  check_refusal(file, "metadata \"llama.rope.scaling.factor\" is 0, wanted a positive number");

  // Frequencies of long waves are divided by 8, of short ones by 1, between them smoothly (Llama 3.1's formula).
  file = tiny_gguf();
  std::vector<float> divisors;
  for (int i = 0; i < 8; ++i) {
    const double wave = 2 * std::numbers::pi * std::pow(100000.0, i / 8.0);
    const double smooth = (8192 / wave - 1) / 3;
    divisors.push_back(static_cast<float>(wave < 2048 ? 1 : wave > 8192 ? 8 : 1 / ((1 - smooth) / 8 + smooth)));
  }
  file.add_tensor("rope_freqs.weight", {8}, divisors);
  const Json scaling = Converted(file).json("config.json")["rope_scaling"];
  CHECK(scaling == Json{{"rope_type", "llama3"},
                        {"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}});
  divisors[0] = 1.5f;
  file.tensor("rope_freqs.weight").data = raw_list(divisors);
  check_refusal(file, "tensor \"rope_freqs.weight\" holds 1.5 at element 0, Llama 3's rope scaling by 8 would be 1");
  file.tensor("rope_freqs.weight").shape = {7};
  file.tensor("rope_freqs.weight").data.resize(7 * 4);
  check_refusal(file, "tensor \"rope_freqs.weight\" has 7 elements, heads of size 16 want 8");
}

TEST_CASE("weights in float16 and bfloat16, in shards") {
  const Converted half(tiny_gguf(), {.dtype = tensorfile::DType::f16, .max_shard_bytes = 20'000});
  CHECK(half.json("config.json")["torch_dtype"] == "float16");
  CHECK(std::filesystem::exists(half.folder / "hf/model.safetensors.index.json"));
  CHECK(half.result.bytes == 2 * half.result.parameters);
  CHECK(half.values("model.layers.1.mlp.up_proj.weight") == half.stored("blk.1.ffn_up.weight"));
  const Converted brain(tiny_gguf(), {.dtype = tensorfile::DType::bf16});
  CHECK(tensorfile::Safetensors::open(brain.folder / "hf").at("model.norm.weight").dtype == tensorfile::DType::bf16);
  CHECK(brain.values("model.layers.1.mlp.up_proj.weight") == brain.stored("blk.1.ffn_up.weight"));
  check_refusal(
      [] {
        GgufFile file = tiny_gguf();
        file.tensor("output_norm.weight").data.replace(8, 4, raw(-65520.f));
        return file;
      }(),
      "tensor \"output_norm.weight\" holds -65520 at element 2, too large for float16: choose bfloat16 or float32",
      {.dtype = tensorfile::DType::f16});
}

TEST_CASE("weights that are not finite, missing, of a wrong shape or unknown") {
  GgufFile file = tiny_gguf();
  file.tensor("blk.1.ffn_up.weight").data.replace(20, 4, raw(std::numeric_limits<float>::quiet_NaN()));
  check_refusal(file, "tensor \"blk.1.ffn_up.weight\" holds nan at element 5: the weights are broken");
  file.tensor("blk.1.ffn_up.weight").data.replace(20, 4, raw(-std::numeric_limits<float>::infinity()));
  check_refusal(file, "tensor \"blk.1.ffn_up.weight\" holds -inf at element 5: the weights are broken");
  file = tiny_gguf();
  file.remove_tensor("blk.1.ffn_norm.weight");
  check_refusal(file, "tensor \"blk.1.ffn_norm.weight\" is missing");
  file = tiny_gguf();
  file.tensor("blk.0.attn_output.weight").shape = {16, 64};
  check_refusal(file, "tensor \"blk.0.attn_output.weight\" has shape [16, 64], the metadata want [32, 32]");
  file = tiny_gguf();
  add_tiny_tensor(file, "blk.0.attn_rot_embd.weight", {4});
  check_refusal(file, "tensor \"blk.0.attn_rot_embd.weight\" belongs to no part of a llama model");
  file = tiny_gguf();
  file.set_number("llama.block_count", 1);
  check_refusal(file, "tensor \"blk.1.attn_norm.weight\" belongs to no part");
  file.set_number("llama.block_count", 2'000'000'000);
  check_refusal(file, "2000000000 layers are announced, but there are only 20 tensors");
  file = tiny_gguf();
  file.remove_tensor("token_embd.weight");
  check_refusal(file, "tensor \"token_embd.weight\" is missing or no matrix");
  file.add_tensor("token_embd.weight", {32}, tiny_values(32, 0));
  check_refusal(file, "tensor \"token_embd.weight\" is missing or no matrix");
}

TEST_CASE("metadata that make no model") {
  const auto refused = [](const auto& change, const char* message) {
    GgufFile file = tiny_gguf();
    change(file);
    check_refusal(file, message);
  };
  refused([](GgufFile& file) { file.remove("general.architecture"); }, "metadata \"general.architecture\" is missing");
  refused([](GgufFile& file) { file.set_text("general.architecture", "mamba"); },
          "architecture \"mamba\" cannot be converted; known are llama, qwen2, qwen2moe, qwen3, qwen3moe");
  refused([](GgufFile& file) { file.set_number("llama.expert_count", 8); },
          "metadata \"llama.expert_used_count\" is missing");
  refused(
      [](GgufFile& file) {
        file.set_number("llama.expert_count", 8);
        file.set_number("llama.expert_used_count", 9);
      },
      "9 experts of 8 are used for a token");
  refused(
      [](GgufFile& file) {
        file.set_number("llama.expert_count", 2'000'000'000);
        file.set_number("llama.expert_used_count", 2);
      },
      "2000000000 experts in each of 2 layers are announced, but all tensors have only ");
  refused([](GgufFile& file) { file.set_text("general.architecture", "qwen3moe"); },
          "a model of architecture \"qwen3moe\" without experts (\"qwen3moe.expert_count\") cannot be converted");
  refused(
      [](GgufFile& file) { file.set_number("llama.attention.value_length", 8); },
      "metadata \"llama.attention.value_length\" is 8, but heads have 16 elements: values of another size than keys");
  refused([](GgufFile& file) { file.set_number("llama.embedding_length", 0); },
          "metadata \"llama.embedding_length\" is 0, wanted a positive number");
  refused([](GgufFile& file) { file.set("llama.block_count", GgufFile::i32, raw<int32_t>(-2)); },
          "metadata \"llama.block_count\" is -2, wanted a positive number");
  // A product of sizes that would wrap around 64 bits.
  refused([](GgufFile& file) { file.set("llama.attention.head_count", GgufFile::u64, raw<uint64_t>(1ull << 39)); },
          "metadata \"llama.attention.head_count\" is 549755813888, wanted a positive number up to 2147483647");
  refused([](GgufFile& file) { file.set_number("llama.attention.head_count_kv", 3); },
          "2 attention heads, 3 key/value heads of size 16: heads must be a multiple, the size even");
  refused([](GgufFile& file) { file.set_number("llama.attention.key_length", 15); },
          "2 attention heads, 1 key/value heads of size 15: heads must be a multiple, the size even");
  refused([](GgufFile& file) { file.set_number("llama.rope.dimension_count", 8); },
          "metadata \"llama.rope.dimension_count\" is 8, but heads have 16 elements: partial rotary embeddings");
  for (const float theta :
       {0.f, -1.f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    refused([&](GgufFile& file) { file.set_real("llama.rope.freq_base", theta); },
            "metadata \"llama.rope.freq_base\" is");
    refused([&](GgufFile& file) { file.set_real("llama.attention.layer_norm_rms_epsilon", theta); },
            "metadata \"llama.attention.layer_norm_rms_epsilon\" is");
  }
  refused([](GgufFile& file) { file.set_number("tokenizer.ggml.eos_token_id", 6); },
          "metadata \"tokenizer.ggml.eos_token_id\" is 6, but the vocabulary has 6 tokens");
}

TEST_CASE("tokenizers that cannot be converted") {
  const auto refused = [](const auto& change, const char* message) {
    GgufFile file = tiny_gguf();
    change(file);
    check_refusal(file, message);
  };
  refused([](GgufFile& file) { file.set_text("tokenizer.ggml.model", "llama"); },
          "tokenizer model \"llama\" cannot be converted; known is gpt2 (byte-level BPE)");
  refused([](GgufFile& file) { file.set_text("tokenizer.ggml.pre", "new"); },
          "metadata \"tokenizer.ggml.pre\" is \"new\", known are default, gpt-2, phi-2, ");
  refused([](GgufFile& file) { file.set_number("tokenizer.ggml.unknown_token_id", 6); },
          "metadata \"tokenizer.ggml.unknown_token_id\" is 6, but there are 6 tokens");
  refused([](GgufFile& file) { file.set_integers("tokenizer.ggml.token_type", {1}); },
          "metadata \"tokenizer.ggml.token_type\" has 1 elements, but there are 6 tokens");
  refused(
      [](GgufFile& file) {
        file.set_texts("tokenizer.ggml.tokens", {"a", "b", "a", "1", "<s>", "<u>"});
      },
      "tokens 0 and 2 are both \"a\"");
  refused([](GgufFile& file) { file.remove("tokenizer.ggml.merges"); },
          "metadata \"tokenizer.ggml.merges\" is missing");
  refused(
      [](GgufFile& file) {
        file.set_texts("tokenizer.ggml.tokens", {"a", "b", "ab", "1", "<s>", "<u>", "x"});
        file.set_integers("tokenizer.ggml.token_type", {1, 1, 1, 1, 3, 4, 1});
      },
      "there are 7 tokens, but tensor \"token_embd.weight\" has 6 rows");
}
