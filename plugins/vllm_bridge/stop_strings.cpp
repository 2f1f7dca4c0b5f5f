#include "plugins/vllm_bridge/stop_strings.hpp"

#include <algorithm>

namespace hexad::vllm {
namespace {

// Whether a stop string ends within the text of the last of `count` tokens.
bool stops_at(const std::vector<int32_t>& tokens, int64_t count, const std::vector<std::string>& stops, size_t longest,
              const Detokenize& detokenize) {
  // A token has at least a byte of text, apart from those that only finish a character or print nothing: hence a few
  // more. What lies before the window is context: a decoder may treat the first token specially (a space before it).
  constexpr int64_t kContext = 4;
  const int64_t window = std::min(count, static_cast<int64_t>(longest) + kContext), begin = count - window;
  const int64_t context = std::min(begin, kContext);
  const int32_t* first = tokens.data() + (begin - context);
  const std::string before = detokenize(first, context), text = detokenize(first, context + window);
  const auto [end, rest] = std::mismatch(before.begin(), before.end(), text.begin(), text.end());
  const auto from = static_cast<size_t>(rest - text.begin());
  return std::any_of(stops.begin(), stops.end(),
                     [&](const std::string& stop) { return text.find(stop, from) != std::string::npos; });
}

}  // namespace

int64_t find_stop(const std::vector<int32_t>& tokens, int64_t examined, const std::vector<std::string>& stops,
                  const Detokenize& detokenize) {
  size_t longest = 0;
  for (const std::string& stop : stops) longest = std::max(longest, stop.size());
  for (int64_t count = examined + 1; longest > 0 && count <= static_cast<int64_t>(tokens.size()); ++count) {
    if (stops_at(tokens, count, stops, longest, detokenize)) return count;
  }
  return 0;
}

}  // namespace hexad::vllm
