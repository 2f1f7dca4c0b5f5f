#include <doctest/doctest.h>

#include "lib/text/unicode.hpp"
#include "plugins/environment/math/number/wide.hpp"

TEST_CASE("lower case is that of the tokenizers, for every character") {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text, wanted;
    hexad::append_utf8(c, text);
    hexad::text::append_lowercase(c, wanted);
    CHECK_MESSAGE(hexad::math::lowercase(text) == wanted, static_cast<uint32_t>(c));
  }
  CHECK(hexad::math::lowercase("\\Gamma ÄÖ x") == "\\gamma äö x");
}
