#include "sdk/verify/case/slope.hpp"

#include <algorithm>
#include <cmath>

namespace hexad::verify {
namespace {

constexpr double kFirst = 4e-3, kLast = 1e-4;  // steps
constexpr double kUnlike = 1e-2;               // of slopes that differ, relative

struct Sides {
  double right, left;  // the slopes there
  double middle;       // of the parabola through the three points
  double bend;         // half of its second derivative
  double larger() const { return std::max(std::abs(right), std::abs(left)); }
};

// The function sees f32 values alone, so that the distance is that of the neighbours which it saw.
Sides sides_of(const std::function<double(double)>& function, double x, double middle, double step) {
  const double at = static_cast<float>(x), above = static_cast<float>(at + step), below = static_cast<float>(at - step);
  Sides sides{};
  sides.right = (function(above) - middle) / (above - at);
  sides.left = (middle - function(below)) / (at - below);
  sides.middle = (sides.left * (above - at) + sides.right * (at - below)) / (above - below);
  sides.bend = (sides.right - sides.left) / (above - below);
  return sides;
}

}  // namespace

std::optional<Slope> slope_at(const std::function<double(double)>& function, double x, double middle) {
  Sides wide = sides_of(function, x, middle, kFirst);
  if (!(std::abs(wide.right - wide.left) > kUnlike * wide.larger())) return Slope{wide.middle, kFirst};
  for (double step = kFirst / 2; step >= kLast; step /= 2) {
    const Sides half = sides_of(function, x, middle, step);
    // Both are 0 along a parabola, and the smaller the step, the smaller along any curve.
    const double unlike = std::abs(half.bend - wide.bend) * 2 * step + std::abs(half.middle - wide.middle);
    if (!(unlike > kUnlike * wide.larger())) return Slope{(4 * half.middle - wide.middle) / 3, step};
    wide = half;
  }
  return std::nullopt;
}

}  // namespace hexad::verify
