// A GGUF file: metadata and tensors, and what a conversion makes of them.
#include "app/convert/gguf.hpp"
#include "lib/base/json.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::attempt([&] {
    const auto gguf = tensorfile::Gguf::parse(std::as_bytes(std::span(data, size)), "file");
    for (const tensorfile::GgufTensor& tensor : gguf.tensors()) tensorfile::dequantize(tensor);
    fuzz::attempt([&] {
      const nlohmann::ordered_json config = convert::gguf_config(gguf);
      const auto weights = convert::gguf_weights(config);
      convert::check_gguf_weights(gguf, weights);
      for (const auto& weight : weights) convert::read_gguf_weight(gguf, weight);
    });
    fuzz::attempt([&] { convert::gguf_tokenizer_config(gguf); });
    fuzz::attempt([&] { convert::gguf_generation_config(gguf); });
    fuzz::attempt([&] {
      const std::string text = json_text(convert::gguf_tokenizer(gguf));
      text::Tokenizer::from_json(parse_json<nlohmann::json>(text), "file");
    });
  });
  return 0;
}
