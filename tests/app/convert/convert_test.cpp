// Hugging Face directories and checkpoints of a run into Hugging Face directories; where the result appears.
#include "app/convert/convert.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <limits>

#include <nlohmann/json.hpp>

#include "app/convert/output.hpp"
#include "core/checkpoint/store.hpp"
#include "lib/base/error.hpp"
#include "lib/tensorfile/safetensors.hpp"
#include "lib/tensorfile/safetensors_writer.hpp"
#include "tests/app/convert/tiny_gguf.hpp"
#include "tests/checkpoint/temp_folder.hpp"

using namespace hexad;
using namespace hexad::convert;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

const std::vector<float> kExact = {0, -1.5f, 0.0078125f, 96};                // in float16 and bfloat16
const std::vector<float> kRounded = {0.1f, 1 + 0x1p-12f, 3.14159f, -1e-3f};  // in neither

// Two floating tensors and an integer one beside `config`.
void write_model(const fs::path& folder, const Json& config, const std::vector<float>& second = kRounded) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << config.dump();
  tensorfile::SafetensorsWriter writer(folder / "model.safetensors", {{"a", tensorfile::DType::f32, {2, 2}},
                                                                      {"b", tensorfile::DType::f32, {4}},
                                                                      {"ids", tensorfile::DType::i64, {1}}});
  writer.write("a", std::as_bytes(std::span(kExact)));
  writer.write("b", std::as_bytes(std::span(second)));
  const int64_t id = 77;
  writer.write("ids", std::as_bytes(std::span(&id, 1)));
  writer.finish();
}

const Json kConfig = {{"model_type", "llama"}, {"torch_dtype", "float32"}, {"hidden_size", 4}};

void check_refusal(const fs::path& source, const fs::path& destination, const std::string& message,
                   const ConvertOptions& options = {}) {
  CAPTURE(message);
  CHECK_THROWS_WITH_AS(convert::convert(source, destination, options), doctest::Contains(message.c_str()), Error);
  CHECK_FALSE(fs::exists(destination / "config.json"));
  for (const std::string& name : names_in(destination.parent_path()))
    CHECK(name.find(".partial-") == std::string::npos);
}

}  // namespace

TEST_CASE("a Hugging Face directory is copied with its side files") {
  TempFolder folder;
  write_model(folder / "in", kConfig);
  folder.write("in/tokenizer.json", "{}");
  folder.write("in/LICENSE", "text");
  folder.write("in/additional_chat_templates/tool_use.jinja", "tools");
  folder.write("in/additional_chat_templates/other", "no template");
  folder.write("in/original/model.pth", "a folder is left out");
  const ConvertResult result = convert::convert(folder / "in", folder / "out");
  CHECK(result.from == "huggingface");
  CHECK(result.tensors == 3);
  CHECK(result.parameters == 9);
  CHECK(result.bytes == 40);
  CHECK(names_in(folder / "out") == std::vector<std::string>{"LICENSE", "additional_chat_templates", "config.json",
                                                             "model.safetensors", "tokenizer.json"});
  CHECK(names_in(folder / "out/additional_chat_templates") == std::vector<std::string>{"tool_use.jinja"});
  CHECK(read_file(folder / "out/LICENSE") == "text");
  CHECK(Json::parse(read_file(folder / "out/config.json")) == kConfig);
  const tensorfile::Safetensors out = tensorfile::Safetensors::open(folder / "out");
  CHECK(tensorfile::to_float32(out.at("b")) == kRounded);
  CHECK(out.at("a").shape == std::vector<int64_t>{2, 2});
}

TEST_CASE("a link that leads out of the folder is refused, be it text, weights or a configuration") {
  TempFolder folder;
  write_model(folder / "elsewhere", kConfig);
  folder.write("elsewhere/tokenizer.json", "{\"secret\": 1}");
  const auto linked = [&](const std::string& name) {
    fs::remove_all(folder / "in");
    write_model(folder / "in", kConfig);
    fs::remove(folder / "in" / name);
    fs::create_symlink("../elsewhere/" + name, folder / "in" / name);
  };
  for (const char* name : {"tokenizer.json", "model.safetensors", "config.json"}) {
    linked(name);
    check_refusal(
        folder / "in", folder / "out",
        fmt::format("in/{0} is a link to {1}, outside of {2}, and a link out of a model's folder is not copied", name,
                    fs::canonical(folder / "elsewhere" / name).string(), (folder / "in").string()));
  }
  fs::create_directory(folder / "gguf");
  folder.write("elsewhere/model.gguf", "GGUF");
  fs::create_symlink("../elsewhere/model.gguf", folder / "gguf/model.gguf");
  check_refusal(folder / "gguf", folder / "out", "gguf/model.gguf is a link to ");

  // Of a checkpoint, its tokenizer's folder too.
  write_model(folder / "step_1/policy/weights", kConfig);
  fs::create_directories(folder / "step_1/policy/tokenizer");
  fs::create_symlink(folder / "elsewhere/tokenizer.json", folder / "step_1/policy/tokenizer/tokenizer.json");
  check_refusal(folder / "step_1", folder / "out", "policy/tokenizer/tokenizer.json is a link to ");
  // The folder of a part may be the link: all that lies where it leads would be copied.
  folder.write("elsewhere/id_rsa", "secret");
  fs::remove_all(folder / "step_1/policy/tokenizer");
  fs::create_directory_symlink(folder / "elsewhere", folder / "step_1/policy/tokenizer");
  check_refusal(folder / "step_1", folder / "out",
                fmt::format("policy/tokenizer is a link to {}, outside of {}", (folder / "elsewhere").string(),
                            (folder / "step_1").string()));
  fs::remove(folder / "step_1/policy/tokenizer");
  fs::create_directory(folder / "step_1/policy/tokenizer");
  fs::rename(folder / "step_1/policy/weights", folder / "weights");
  fs::create_directory_symlink(folder / "weights", folder / "step_1/policy/weights");
  check_refusal(folder / "step_1", folder / "out", "policy/weights is a link to ");
}

TEST_CASE("a pipe under the name of weights or of the configuration makes nobody wait") {
  TempFolder folder;
  for (const char* name : {"model.safetensors", "config.json"}) {
    write_model(folder / "in", kConfig);
    fs::remove(folder / "in" / name);
    REQUIRE(::mkfifo((folder / "in" / name).c_str(), 0600) == 0);
    check_refusal(folder / "in", folder / "out", fmt::format("{}: not a regular file", name));
    fs::remove_all(folder / "in");
  }
}

TEST_CASE("links within the folder, links to folders, and the files of Hugging Face's cache are taken") {
  TempFolder folder;
  const std::string snapshot = "hub/models--owner--name/snapshots/0a1b";
  write_model(folder / "blobs", kConfig);
  fs::create_directories(folder / snapshot);
  fs::rename(folder / "blobs", folder / "hub/models--owner--name/blobs");
  for (const char* name : {"config.json", "model.safetensors"})
    fs::create_symlink(std::string("../../blobs/") + name, folder / snapshot / name);
  folder.write(snapshot + "/README.md", "text");
  fs::create_symlink("README.md", folder / snapshot / "LICENSE");
  fs::create_directory_symlink("/", folder / snapshot / "original");
  CHECK(convert::convert(folder / snapshot, folder / "out").tensors == 3);
  CHECK(names_in(folder / "out") ==
        std::vector<std::string>{"LICENSE", "README.md", "config.json", "model.safetensors"});
  CHECK(fs::is_regular_file(fs::symlink_status(folder / "out/LICENSE")));
}

TEST_CASE("to bfloat16 or float16 and back: rounded once, integers as they are") {
  tensorfile::DType dtype = tensorfile::DType::bf16;
  SUBCASE("bfloat16") {}
  SUBCASE("float16") { dtype = tensorfile::DType::f16; }
  CAPTURE(tensorfile::torch_name(dtype));
  TempFolder folder;
  write_model(folder / "in", kConfig);
  CHECK(convert::convert(folder / "in", folder / "half", {.dtype = dtype}).bytes == 8 * 2 + 8);
  CHECK(convert::convert(folder / "half", folder / "back", {.dtype = tensorfile::DType::f32}).bytes == 40);
  CHECK(Json::parse(read_file(folder / "half/config.json"))["torch_dtype"] == tensorfile::torch_name(dtype));
  CHECK(Json::parse(read_file(folder / "back/config.json")) == kConfig);
  const tensorfile::Safetensors half = tensorfile::Safetensors::open(folder / "half"),
                                back = tensorfile::Safetensors::open(folder / "back");
  CHECK(half.at("a").dtype == dtype);
  CHECK(half.at("ids").dtype == tensorfile::DType::i64);
  CHECK(*reinterpret_cast<const int64_t*>(back.at("ids").data.data()) == 77);
  CHECK(tensorfile::to_float32(back.at("a")) == kExact);
  for (int i = 0; i < 4; ++i) {
    const float value = tensorfile::to_float32(back.at("b"))[i];
    CHECK(value != kRounded[i]);
    CHECK(value == doctest::Approx(kRounded[i]).epsilon(dtype == tensorfile::DType::bf16 ? 0x1p-8 : 0x1p-11));
    CHECK(value == (dtype == tensorfile::DType::bf16
                        ? tensorfile::bf16_to_float(tensorfile::float_to_bf16(kRounded[i]))
                        : tensorfile::f16_to_float(tensorfile::float_to_f16(kRounded[i]))));
  }
  CHECK(convert::convert(folder / "half", folder / "same").bytes == 8 * 2 + 8);  // no dtype asked for: unchanged
  CHECK(read_file(folder / "same/model.safetensors") == read_file(folder / "half/model.safetensors"));
}

TEST_CASE("a config.json that says dtype keeps that key") {
  TempFolder folder;
  write_model(folder / "in", {{"dtype", "float32"}});
  convert::convert(folder / "in", folder / "out", {.dtype = tensorfile::DType::bf16});
  CHECK(Json::parse(read_file(folder / "out/config.json")) == Json{{"dtype", "bfloat16"}});
}

TEST_CASE("shards in, one file out, and the other way") {
  TempFolder folder;
  write_model(folder / "in", kConfig);
  convert::convert(folder / "in", folder / "shards", {.dtype = {}, .max_shard_bytes = 20});
  CHECK(names_in(folder / "shards") ==
        std::vector<std::string>{"config.json", "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                 "model-00003-of-00003.safetensors", "model.safetensors.index.json"});
  convert::convert(folder / "shards", folder / "one");
  CHECK(names_in(folder / "one") == std::vector<std::string>{"config.json", "model.safetensors"});
  CHECK(read_file(folder / "one/model.safetensors") == read_file(folder / "in/model.safetensors"));
}

TEST_CASE("a checkpoint of a run: weights and tokenizer, nothing of the training") {
  TempFolder folder;
  const fs::path step = folder / "step_3";
  write_model(step / "policy/weights", kConfig);
  folder.write("step_3/policy/weights/generation_config.json", "{\"eos_token_id\": 2}");
  folder.write("step_3/policy/optimizer/model.safetensors", "state");
  folder.write("step_3/training_info.json", "{}");
  folder.write("step_3/config.yaml", "{}");
  SUBCASE("whole") {
    folder.write("step_3/policy/tokenizer/tokenizer.json", "{\"version\": \"1.0\"}");
    folder.write("step_3/policy/tokenizer/tokenizer_config.json", "{}");
    folder.write("step_3/policy/tokenizer/additional_chat_templates/rag.jinja", "rag");
    folder.write("step_3/policy/tokenizer/generation_config.json", "{\"eos_token_id\": 3}");  // the tokenizer's counts
    const ConvertResult result = convert::convert(step, folder / "out", {.dtype = tensorfile::DType::bf16});
    CHECK(result.from == "checkpoint");
    CHECK(read_file(folder / "out/additional_chat_templates/rag.jinja") == "rag");
    CHECK(names_in(folder / "out") == std::vector<std::string>{"additional_chat_templates", "config.json",
                                                               "generation_config.json", "model.safetensors",
                                                               "tokenizer.json", "tokenizer_config.json"});
    CHECK(Json::parse(read_file(folder / "out/config.json"))["torch_dtype"] == "bfloat16");
    CHECK(read_file(folder / "out/generation_config.json") == "{\"eos_token_id\": 3}");
    CHECK(tensorfile::to_float32(tensorfile::Safetensors::open(folder / "out").at("a")) == kExact);
  }
  SUBCASE("without its tokenizer") {
    check_refusal(step, folder / "out", "policy/tokenizer: is missing: this is no whole checkpoint");
  }
  SUBCASE("with a damaged weight file") {
    folder.write("step_3/policy/tokenizer/tokenizer.json", "{}");
    folder.write("step_3/policy/weights/model.safetensors", "short");
    check_refusal(step, folder / "out", "policy/weights/model.safetensors: not a safetensors file: only 5 bytes long");
  }
}

TEST_CASE("a directory that holds one GGUF file") {
  TempFolder folder;
  folder.write("in/m.gguf", tiny_gguf().bytes());
  folder.write("in/README.md", "");
  CHECK(convert::convert(folder / "in", folder / "out").from == "gguf");
  folder.write("in/n.gguf", "");
  check_refusal(folder / "in", folder / "out2", "holds several .gguf files (");
}

TEST_CASE("sources that are no model") {
  TempFolder folder;
  check_refusal(folder / "none", folder / "out", "none: no such file or directory");
  check_refusal(folder.write("model.bin", ""), folder / "out", "model.bin: neither a .gguf file nor a directory");
  fs::create_directory(folder / "empty");
  check_refusal(folder / "empty", folder / "out",
                "empty: holds neither config.json nor policy/weights (a checkpoint) nor a .gguf file");
  folder.write("run/step_9/policy/weights/config.json", "{}");
  folder.write("run/step_10/policy/weights/config.json", "{}");
  folder.write("run/step_11/note", "not one");
  folder.write("run/step_12b/policy/weights/config.json", "{}");
  check_refusal(folder / "run", folder / "out", "run: holds checkpoints of a run: name one of them. The newest is ");
  CHECK(checkpoint::newest_checkpoint(folder / "run") == folder / "run/step_10");
  folder.write("bare/config.json", "{}");
  check_refusal(folder / "bare", folder / "out",
                "bare: has neither model.safetensors nor model.safetensors.index.json");
  folder.write("bare/pytorch_model.bin", "");
  check_refusal(
      folder / "bare", folder / "out",
      "bare: has neither model.safetensors nor model.safetensors.index.json; it holds pytorch_model.bin, which "
      "is Python's pickle");
  folder.write("adapter/adapter_config.json", R"({"peft_type": "LORA"})");
  check_refusal(folder / "adapter", folder / "out",
                "adapter: holds neither config.json nor policy/weights (a checkpoint) nor a .gguf file; it holds an "
                "adapter of PEFT's (LORA; adapter_config.json)");
  write_model(folder / "list", Json::array());
  check_refusal(folder / "list", folder / "out", "list/config.json: not a JSON object");
  folder.write("list/config.json", "{");
  check_refusal(folder / "list", folder / "out", "list/config.json: not valid JSON: ");
}

TEST_CASE("weights that are not finite, or too large for the dtype") {
  TempFolder folder;
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  write_model(folder / "nan", kConfig, {1, 2, nan, 3});
  const std::string holds_nan =
      (folder / "nan").string() + ": tensor \"b\" holds nan at element 2: the weights are broken";
  check_refusal(folder / "nan", folder / "out", holds_nan);
  check_refusal(folder / "nan", folder / "out", holds_nan, {.dtype = tensorfile::DType::bf16});
  write_model(folder / "inf", kConfig, {-inf, 2, 0, 3});
  check_refusal(folder / "inf", folder / "out", "tensor \"b\" holds -inf at element 0: the weights are broken",
                {.dtype = tensorfile::DType::f16});
  write_model(folder / "large", kConfig, {1, 70000, 0, 3});
  check_refusal(folder / "large", folder / "out",
                "tensor \"b\" holds 70000 at element 1, too large for float16: choose bfloat16 or float32",
                {.dtype = tensorfile::DType::f16});
  CHECK_NOTHROW(convert::convert(folder / "large", folder / "out", {.dtype = tensorfile::DType::bf16}));
}

TEST_CASE("a bfloat16 value beyond the largest is refused, not made infinite") {
  TempFolder folder;
  write_model(folder / "in", kConfig, {1, 2, 3.4e38f, 3});
  check_refusal(folder / "in", folder / "out",
                "tensor \"b\" holds 3.4e+38 at element 2, too large for bfloat16: choose float32",
                {.dtype = tensorfile::DType::bf16});
}

TEST_CASE("dtypes that weights are not stored in") {
  TempFolder folder;
  write_model(folder / "in", kConfig);
  for (const tensorfile::DType dtype : {tensorfile::DType::f64, tensorfile::DType::i8, tensorfile::DType::f8_e4m3}) {
    check_refusal(folder / "in", folder / "out",
                  fmt::format("weights cannot be stored as {}: choose float32, bfloat16 or float16",
                              tensorfile::torch_name(dtype)),
                  {.dtype = dtype});
  }
}

TEST_CASE("the destination: an empty directory is used, anything else is left alone") {
  TempFolder folder;
  write_model(folder / "in", kConfig);
  fs::create_directory(folder / "empty");
  convert::convert(folder / "in", folder / "empty/");
  CHECK(fs::exists(folder / "empty/model.safetensors"));
  convert::convert(folder / "in", folder / "new/deep/out");
  CHECK(fs::exists(folder / "new/deep/out/model.safetensors"));
  CHECK((fs::status(folder / "new/deep/out").permissions() & fs::perms::mask) == static_cast<fs::perms>(0755));

  folder.write("full/note", "mine");
  check_refusal(folder / "in", folder / "full",
                "full: exists already; nothing was written. Remove it or choose another name");
  CHECK(read_file(folder / "full/note") == "mine");
  folder.write("file", "mine");
  check_refusal(folder / "in", folder / "file", "file: exists already");
  fs::create_symlink(folder / "gone", folder / "link");
  check_refusal(folder / "in", folder / "link", "link: exists already");
  CHECK_THROWS_WITH_AS(convert::convert(folder / "in", folder / "in"), doctest::Contains("in: exists already"), Error);
  CHECK_THROWS_WITH_AS(convert::convert(folder / "in", folder / "file/out"),
                       doctest::Contains("file: a directory cannot be made there: Not a directory"), Error);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"empty", "file", "full", "in", "link", "new"});
}

TEST_CASE("an output that is not committed leaves nothing; a name that was taken meanwhile is left alone") {
  TempFolder folder;
  {
    ConvertOutput output(folder / "out");
    output.write_text("config.json", "{}");
    CHECK(names_in(folder.path()).size() == 1);
    CHECK_FALSE(fs::exists(folder / "out"));
    CHECK_THROWS_WITH_AS(output.write_text("none/config.json", "{}"),
                         doctest::Contains("none/config.json: cannot be written: No such file"), Error);
  }
  CHECK(names_in(folder.path()).empty());
  {
    ConvertOutput output(folder / "out");
    folder.write("out", "mine");
    CHECK_THROWS_WITH_AS(output.commit(), doctest::Contains("out: exists already"), Error);
  }
  CHECK(names_in(folder.path()) == std::vector<std::string>{"out"});
  CHECK(read_file(folder / "out") == "mine");
}
