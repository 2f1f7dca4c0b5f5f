// Helpers of messages: lists, parts that stand for others, "did you mean ...?".
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace hexad {

// "a, b, c". Texts or integers. (fmt::join would instantiate its formatters in every file that says what it wanted.)
template <typename Items>
std::string joined(const Items& items, std::string_view separator = ", ") {
  std::string text;
  bool first = true;
  for (const auto& item : items) {
    if (!first) text += separator;
    first = false;
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(item)>>) {
      text += std::to_string(item);
    } else {
      text += item;
    }
  }
  return text;
}

// `text` with `by` in every place of `part`, which is not empty.
inline std::string replaced(std::string text, std::string_view part, std::string_view by) {
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += by.size()) text.replace(at, part.size(), by);
  return text;
}

// 1234567 as "1,234,567".
std::string grouped(int64_t number);

// `text` without the ASCII white space at its ends.
std::string_view trimmed(std::string_view text);

// ": it is Git LFS's pointer ..." where the bytes of a file begin as one, which a clone without LFS leaves in the place
// of a large file; empty for any other.
std::string_view lfs_hint(std::string_view bytes);

// Levenshtein distance with adjacent transpositions counted as one edit, on bytes.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, if it is near enough to be a typo: at most a third of its length, or 2 edits; 1 of
// up to 3 letters. Never the word itself.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// The same of a value's texts, where one of them may be `word` written otherwise: bf16, fp32, half, float and
// torch.float16 are names of element types.
std::optional<std::string> nearest_choice(std::string_view word, std::span<const std::string> choices);

// ", did you mean 'X'?" for the nearest candidate; empty when none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace hexad
