// For generators: ends a completion at a text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace hexad::sdk {

// As Call::detokenize.
using Detokenize = std::function<std::string(const int32_t* ids, int64_t count)>;

// Whether a stop string ends within the text of the last token. The last `sampled` tokens count, the prompt is before
// them. To be asked after every sampled token: only the text that can hold a new occurrence is looked at.
inline bool ends_at_stop_string(std::span<const int32_t> tokens, int64_t sampled, std::span<const std::string> stops,
                                const Detokenize& detokenize) {
  if (stops.empty() || sampled == 0) return false;
  size_t longest = 0;
  for (const std::string& stop : stops) longest = std::max(longest, stop.size());
  // A token has at least one byte of text, apart from those that only finish a character or print nothing: hence a few
  // more. Tokens before the window are context: a decoder may treat the first one specially (a space before it).
  constexpr int64_t kContext = 4;
  const int64_t window = std::min<int64_t>(sampled, static_cast<int64_t>(longest) + kContext);
  const int64_t begin = static_cast<int64_t>(tokens.size()) - window, context = std::min(begin, kContext);
  const int32_t* first = tokens.data() + (begin - context);
  const std::string before = detokenize(first, context), text = detokenize(first, context + window);
  // Where the window's text begins; a character that the window finished differs from `before` and counts as new.
  const auto [end, rest] = std::mismatch(before.begin(), before.end(), text.begin(), text.end());
  const auto from = static_cast<size_t>(rest - text.begin());
  return std::any_of(stops.begin(), stops.end(),
                     [&](const std::string& stop) { return text.find(stop, from) != std::string::npos; });
}

}  // namespace hexad::sdk
