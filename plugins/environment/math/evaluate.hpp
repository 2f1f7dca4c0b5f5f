// The value of an expression to fifty digits, at given places of its symbols.
#pragma once
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "plugins/environment/math/number/exact.hpp"

namespace hexad::math {

using Real = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<60>, boost::multiprecision::et_off>;
struct Complex {
  Real re = 0, im = 0;
};

// At the point that `seed` chooses: each symbol has a value of its own, real for real symbols. Nothing for what is not
// defined there (a pole, an overflow) or not known to be a number.
// `bound` has values for some.
using Bindings = std::map<std::string, Complex>;
std::optional<Complex> value(const Node& a, uint64_t seed, const Bindings& bound = {});

}  // namespace hexad::math
