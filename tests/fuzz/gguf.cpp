// A GGUF file: metadata and tensors, and what a conversion makes of them.
#include "lib/base/json.hpp"
#include "core/checkpoint/convert_gguf.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] {
    const auto gguf = tensorfile::Gguf::parse(std::as_bytes(std::span(data, size)), "file");
    for (const tensorfile::GgufTensor& tensor : gguf.tensors()) tensorfile::dequantize(tensor);
    fuzz::attempt([&] {
      const nlohmann::ordered_json config = checkpoint::gguf_config(gguf);
      for (const auto& weight : checkpoint::gguf_weights(gguf, config)) checkpoint::read_gguf_weight(gguf, weight);
    });
    fuzz::attempt([&] { checkpoint::gguf_tokenizer_config(gguf); });
    fuzz::attempt([&] { checkpoint::gguf_generation_config(gguf); });
    fuzz::attempt([&] {
      const std::string text = json_text(checkpoint::gguf_tokenizer(gguf));
      text::Tokenizer::from_json(parse_json<nlohmann::json>(text), "file");
    });
  });
  return 0;
}
