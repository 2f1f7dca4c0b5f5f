// The slope of a function at a value that is kept as an f32, by differences.
#pragma once
#include <functional>
#include <optional>

namespace hexad::verify {

struct Slope {
  double value = 0;
  double step = 0;  // the smallest that was taken
};

// Nothing at a kink. There, slopes to the right and to the left differ however small the step is; along a curve their
// difference shrinks with it. `middle`: the function at `x`.
std::optional<Slope> slope_at(const std::function<double(double)>& function, double x, double middle);

}  // namespace hexad::verify
