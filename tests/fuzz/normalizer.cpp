// The `normalizer` of a tokenizer.json, and behind a NUL byte a text for it.
#include "lib/text/tokenizer/step/normalizer.hpp"

#include <cstdlib>

#include "lib/base/json.hpp"
#include "lib/base/utf8.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;

namespace {

// An accent behind a space, characters that compose, decompose and change their length, an emoji.
constexpr std::string_view kText =
    " \xcc\x81\xc3\xa9 \xef\xac\x81\xe0\xae\xa8\xe0\xae\xbf \xc4\xb0\xf0\x9f\x98\x80 a A ";

// Whatever the steps are: no more than was promised, the part of the first character within the text, valid UTF-8.
void normalize(const text::Normalizer& normalizer, std::string_view given) {
  text::NormalizedText passing;
  passing.text = given;
  passing.from_start = given.empty() ? 0 : char_size(given[0]);
  passing.room = text::most_made(given.size());
  normalizer.apply(passing);
  if (passing.from_start > passing.text.size() || utf8_prefix(passing.text) != passing.text.size()) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view json = fuzz::two_texts(data, size).first, given = fuzz::two_texts(data, size).second;
  const auto value = try_parse_json<nlohmann::json>(json);
  if (value.is_discarded()) return 0;
  fuzz::attempt([&] {
    const auto normalizer = text::make_normalizer(text::Component(value, "file: normalizer"));
    std::string buffer;
    for (const std::string_view each : {valid_utf8(given, buffer), std::string_view(" "), kText}) {
      fuzz::attempt([&] { normalize(*normalizer, each); });
    }
  });
  return 0;
}
