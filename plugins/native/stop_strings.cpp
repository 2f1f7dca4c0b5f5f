#include "plugins/native/stop_strings.hpp"

#include <algorithm>

namespace hexad::native {

bool stops_at_text(const Sequence& sequence, const Detokenize& detokenize) {
  const std::vector<std::string>& stops = sequence.request.stop_strings;
  const int64_t sampled = sequence.known() - sequence.prompt_size();
  if (stops.empty() || sampled == 0) return false;
  size_t longest = 0;
  for (const std::string& stop : stops) longest = std::max(longest, stop.size());
  // A token has at least one byte of text, apart from those that only finish a character or print nothing: hence a few
  // more. Tokens before the window are context: a decoder may treat the first one specially (a space before it).
  constexpr int64_t kContext = 4;
  const int64_t window = std::min<int64_t>(sampled, static_cast<int64_t>(longest) + kContext);
  const int64_t begin = sequence.known() - window, context = std::min(begin, kContext);
  const int32_t* first = sequence.tokens.data() + (begin - context);
  const std::string before = detokenize(first, context), text = detokenize(first, context + window);
  // Where the window's text begins; a character that the window finished differs from `before` and counts as new.
  const auto [end, rest] = std::mismatch(before.begin(), before.end(), text.begin(), text.end());
  const size_t from = static_cast<size_t>(rest - text.begin());
  return std::any_of(stops.begin(), stops.end(),
                     [&](const std::string& stop) { return text.find(stop, from) != std::string::npos; });
}

}  // namespace hexad::native
