#include "app/data/histogram.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/text.hpp"

namespace hexad::dataset_view {
namespace {

constexpr int64_t kBins = 12;
constexpr int64_t kBar = 40;  // columns of the fullest bin

// The smallest of 1, 2, 5, 10, 20, 50 ... with which at most kBins bins hold `first` to `last`.
int64_t width_for(int64_t first, int64_t last) {
  for (int64_t power = 1;; power *= 10) {
    for (const int64_t width : {power, 2 * power, 5 * power})
      if (last / width - first / width < kBins) return width;
  }
}

}  // namespace

std::string histogram(const std::vector<int64_t>& lengths) {
  if (lengths.empty()) return "";
  const auto [shortest, longest] = std::ranges::minmax(lengths);
  const int64_t width = width_for(shortest, longest), first = shortest / width;
  std::vector<int64_t> counts(static_cast<size_t>(longest / width - first + 1));
  for (const int64_t length : lengths) ++counts[static_cast<size_t>(length / width - first)];
  const int64_t most = std::ranges::max(counts);
  const size_t columns = grouped(longest / width * width + width - 1).size();
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t begin = (first + static_cast<int64_t>(i)) * width;
    const std::string range =
        width == 1 ? fmt::format("{:>{}}", grouped(begin), columns)
                   : fmt::format("{:>{}} - {:>{}}", grouped(begin), columns, grouped(begin + width - 1), columns);
    // One that is not empty shows.
    const int64_t bar = std::max<int64_t>(counts[i] * kBar / most, counts[i] > 0);
    text +=
        fmt::format("  {}  {:{}}  {}\n", range, std::string(static_cast<size_t>(bar), '#'), kBar, grouped(counts[i]));
  }
  return text;
}

}  // namespace hexad::dataset_view
