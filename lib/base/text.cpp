#include "lib/base/text.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hexad {

std::string_view trimmed(std::string_view text) {
  constexpr const char* kSpace = " \t\r\n\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  // The row of the table for a's first i characters, and the two above it.
  std::vector<size_t> row(b.size() + 1), above(b.size() + 1), two_above(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    two_above.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = above[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

namespace {
constexpr size_t kShortWord = 3;  // two edits make any other of it
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  std::optional<std::string> best;
  size_t best_distance = (word.size() <= kShortWord ? 1 : std::max<size_t>(2, word.size() / 3)) + 1;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(word.size(), candidate.size()), shorter = std::min(word.size(), candidate.size());
    if (longer - shorter >= best_distance) continue;  // each character too many is an edit
    const size_t distance = edit_distance(word, candidate);
    if (distance > 0 && distance < best_distance) best_distance = distance, best = candidate;
  }
  return best;
}

namespace {
// Short names of element types, and C's.
constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {"bf16", "bfloat16"}, {"bfloat", "bfloat16"}, {"fp16", "float16"},   {"f16", "float16"},  {"half", "float16"},
    {"fp32", "float32"},  {"f32", "float32"},     {"float", "float32"},  {"tf32", "float32"}, {"single", "float32"},
    {"fp64", "float64"},  {"f64", "float64"},     {"double", "float64"},
};
}  // namespace

std::optional<std::string> nearest_choice(std::string_view word, std::span<const std::string> choices) {
  std::string_view type = word.starts_with("torch.") ? word.substr(6) : word;
  const auto other = std::ranges::find(kTypes, type, &std::pair<std::string_view, std::string_view>::first);
  if (other != std::end(kTypes)) type = other->second;
  const auto same = std::ranges::find(choices, type);
  return type != word && same != choices.end() ? *same : nearest(word, choices);
}

std::string_view lfs_hint(std::string_view bytes) {
  if (!bytes.starts_with("version https://git-lfs.github.com/spec/")) return "";
  return ": it is Git LFS's pointer to the file and not the file itself. Fetch it: git lfs pull, in the folder that "
         "was cloned, or hf download";
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const auto suggestion = nearest(word, candidates);
  return suggestion ? ", did you mean '" + *suggestion + "'?" : "";
}

}  // namespace hexad
