#include "lib/text/comparable.hpp"

#include <doctest/doctest.h>

using hexad::text::comparable;

TEST_CASE("texts that look the same are the same, with or without case") {
  CHECK(comparable("  Two \n words ", true) == "two words");
  CHECK(comparable("  Two \n words ", false) == "Two words");
  CHECK(comparable("ŁÓDŹ", true) == comparable("łódź", true));
  CHECK(comparable("ŁÓDŹ", false) != comparable("łódź", false));
  CHECK(comparable("Москва", true) == "москва");
  CHECK(comparable("STRASSE", true) == comparable("straße", true));
  CHECK(comparable("a\u00a0\u2003b\u3000", true) == "a b");
  CHECK(comparable("e\u0301te\u0301", false) == "\u00e9t\u00e9");  // an accent of its own
  CHECK(comparable("E\u0301", true) == "\u00e9");
  CHECK(comparable("\u00e9t\u00e9", true) != comparable("ete", true));
  CHECK(comparable("x\u00b2", true) == "x\u00b2");  // a power stays one
  CHECK(comparable("\xff", true) == "\ufffd");
  CHECK(comparable(" \t\n", true).empty());
}
