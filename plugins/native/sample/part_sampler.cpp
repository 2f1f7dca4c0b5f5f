#include "plugins/native/sample/part_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/native/sample/row_kernel.hpp"

namespace hexad::native {
namespace {

float scale_of(const SamplingParams& params) { return params.greedy() ? 1.0f : float(1.0 / params.temperature); }

}  // namespace

PartSum sum_of_part(const float* logits, int64_t columns, const SamplingParams& params) {
  if (columns == 0) return {-std::numeric_limits<double>::infinity(), 0};
  const float top = largest(logits, columns);
  if (!std::isfinite(top)) return {top, 0};
  return {top, ExpRow(logits, columns, top, scale_of(params)).total};
}

PartDraw find_part(std::span<const PartSum> parts, const SamplingParams& params, double u) {
  PartDraw found{.largest = -std::numeric_limits<double>::infinity()};
  for (const PartSum& part : parts) {
    if (std::isnan(part.largest)) return {};
    found.largest = std::max(found.largest, part.largest);
  }
  if (!std::isfinite(found.largest)) return {};
  // What a part's own weights count in the row's.
  const auto factor = [&](const PartSum& part) {
    return part.sum > 0 ? std::exp((part.largest - found.largest) * double(scale_of(params))) : 0.0;
  };
  for (const PartSum& part : parts) found.total += part.sum * factor(part);
  double before = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double here = parts[i].sum * factor(parts[i]), rest = std::max(0.0, u * found.total - before);
    before += here;
    if (params.greedy() ? parts[i].largest != found.largest : here <= 0) continue;
    found.part = static_cast<int64_t>(i);
    if (params.greedy()) break;
    found.rest = rest / factor(parts[i]);
    if (rest < here) break;  // else the last one, if rounding leaves some of it
  }
  return found;
}

Draw draw_in_part(const float* logits, int64_t columns, int64_t first, const PartDraw& found,
                  const SamplingParams& params) {
  const float scale = scale_of(params);
  const int64_t column = params.greedy() ? std::max_element(logits, logits + columns) - logits
                                         : ExpRow(logits, columns, largest(logits, columns), scale).at(found.rest);
  const double above = double(logits[column]) - found.largest;
  return {static_cast<int32_t>(first + column), float(above * double(scale) - std::log(found.total))};
}

}  // namespace hexad::native
