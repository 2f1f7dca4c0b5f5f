#include "app/convert/storable.hpp"

#include <cmath>

#include "lib/base/error.hpp"

namespace hexad::convert {

void require_storable(std::span<const float> values, const Storing& storing, size_t first) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::abs(values[i]) < storing.infinite_from) continue;
    if (!std::isfinite(values[i])) {
      fail(ErrorKind::data, "{}: tensor \"{}\" holds {} at element {}: the weights are broken", storing.source.string(),
           storing.tensor, values[i], first + i);
    }
    fail(ErrorKind::data, "{}: tensor \"{}\" holds {} at element {}, too large for {}: choose {}",
         storing.source.string(), storing.tensor, values[i], first + i, storing.type, storing.instead);
  }
}

}  // namespace hexad::convert
