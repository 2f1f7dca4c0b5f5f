// A tokenizer.json, and behind a NUL byte a text for it.
#include "lib/base/json.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json = fuzz::two_texts(data, size).first, text = fuzz::two_texts(data, size).second;
  const auto document = try_parse_json<nlohmann::json>(json);
  if (document.is_discarded()) return 0;
  fuzz::attempt([&] {
    const auto tokenizer = text::Tokenizer::from_json(document, "file");
    for (const std::string_view each :
         {text, std::string_view("Hello, <s>World's 123 \xc3\xa9\xf0\x9f\x98\x80</s>\n")}) {
      fuzz::attempt([&] {
        const std::vector<int32_t> ids = tokenizer->encode(each, /*add_special_tokens=*/true);
        tokenizer->decode(ids, /*skip_special_tokens=*/false);
        tokenizer->encode_pair(each, "b", /*add_special_tokens=*/true);
      });
    }
    std::vector<int32_t> all = {-1};
    for (int32_t id = 0; id <= std::min(tokenizer->vocab_size(), 1000); ++id) all.push_back(id);
    tokenizer->decode(all, /*skip_special_tokens=*/true);
  });
  return 0;
}
