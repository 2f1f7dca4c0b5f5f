// "Did you mean ...?": the nearest of a set of names by edit distance.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hexad {

// Levenshtein distance with adjacent transpositions counted as one edit, on bytes.
size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, if it is near enough to be a typo: at most a third of its length, or 2 edits; 1 of
// up to 3 letters. Never the word itself.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// ", did you mean 'X'?" for the nearest candidate; empty when none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace hexad
