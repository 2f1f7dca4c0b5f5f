// The bridge to OpenAI-compatible servers in this process, and fake servers to attach it to.
#pragma once
#include "plugins/openai_bridge/generator.hpp"
#include "tests/plugins/openai_bridge/support/fake_openai.hpp"
#include "tests/plugins/server_bridge/support/harness.hpp"

namespace openai_test {

// Attached to one server, with its model's name.
class Harness : public BridgeHarness<hexad::openai::Generator, FakeOpenai> {
  using Base = BridgeHarness<hexad::openai::Generator, FakeOpenai>;
  static Json named(Json cfg) {
    if (!cfg.contains("model")) cfg["model"] = "m";
    if (!cfg.contains("logprobs")) cfg["logprobs"] = true;
    return cfg;
  }

 public:
  explicit Harness(const FakeOpenai& server, Json cfg = Json::object(), Json section = Json::object())
      : Base({&server}, named(std::move(cfg)), std::move(section)) {}
};

// A model whose tokenizer has the letters a to h as ids 4 to 11; `merges`: and "ab" as 12, which takes their place.
class LetterModel {
 public:
  explicit LetterModel(bool merges = false) {
    const std::filesystem::path source =
        std::filesystem::path(std::getenv("HEXAD_SOURCE_DIR")) / "configs" / "quickstart_model";
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "config.json"}) {
      std::filesystem::copy_file(source / name, dir_.path() / name, std::filesystem::copy_options::overwrite_existing);
    }
    if (!merges) return;
    change("tokenizer.json", [](Json& file) {
      file["model"]["vocab"]["ab"] = 12;
      file["model"]["merges"] = {"a b"};
    });
    change("config.json", [](Json& file) { file["vocab_size"] = 13; });
  }
  std::filesystem::path path() const { return dir_.path(); }
  Json section() const { return {{"model_name", dir_.path().string()}}; }

 private:
  template <typename Change>
  void change(const char* name, const Change& change) {
    std::ifstream in(dir_.path() / name);
    Json file = Json::parse(in);
    change(file);
    std::ofstream(dir_.path() / name) << file.dump();
  }
  ModelDir dir_;
};
inline constexpr const char* kLetters = "abcdefgh";

}  // namespace openai_test
