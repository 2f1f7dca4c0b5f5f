// Lengths in bins of round widths.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace hexad::dataset_view {

// A line a bin, of lengths that are 0 or more: "   100 -    149  ############  1,234". At most twelve bins of a width
// that is 1, 2 or 5 times a power of ten; empty ones at the ends are left out. "" of no lengths.
std::string histogram(const std::vector<int64_t>& lengths);

}  // namespace hexad::dataset_view
