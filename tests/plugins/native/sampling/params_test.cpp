#include "plugins/native/sample/sampler.hpp"

#include <doctest/doctest.h>
#include <hexad/services.hpp>

#include <cmath>
#include <string>

using hexad::native::normalized;
using hexad::native::SamplingParams;

namespace {

std::string refusal(const SamplingParams& params) {
  try {
    normalized(params);
  } catch (const hexad::sdk::Error& error) {
    CHECK(error.code() == HEXAD_INVALID_ARGUMENT);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("sampling parameters are refused with what is wrong with them") {
  CHECK(refusal({.temperature = 2.5}) == "temperature must be in [0, 2], got 2.5");
  CHECK(refusal({.temperature = std::nan("")}) == "temperature must be in [0, 2], got nan");
  CHECK(refusal({.top_p = 0}) == "top_p must be in (0, 1], got 0 (1 turns it off)");
  CHECK(refusal({.min_p = 1.5}) == "min_p must be in [0, 1], got 1.5 (0 turns it off)");
  CHECK(refusal({.top_k = -2}) == "top_k must be at least 1, or 0 to turn it off, got -2");
  CHECK(refusal({}) == "");
}
