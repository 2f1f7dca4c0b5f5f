#include "plugins/server_bridge/stop_strings.hpp"

#include <span>

namespace hexad::bridge {

int64_t find_stop(const std::vector<int32_t>& tokens, int64_t examined, const std::vector<std::string>& stops,
                  const sdk::Detokenize& detokenize) {
  if (stops.empty()) return 0;
  for (int64_t count = examined + 1; count <= static_cast<int64_t>(tokens.size()); ++count) {
    const auto so_far = std::span(tokens).first(static_cast<size_t>(count));
    if (sdk::ends_at_stop_string(so_far, count, stops, detokenize)) return count;
  }
  return 0;
}

}  // namespace hexad::bridge
