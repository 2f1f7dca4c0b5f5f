#include "app/config/fold.hpp"

#include <algorithm>

namespace hexad::config {

std::vector<Problem> folded(const std::vector<Problem>& problems) {
  std::vector<Problem> kept;
  for (const Problem& problem : problems) {
    const auto same = std::ranges::find_if(kept, [&](const Problem& each) {
      return !problem.is_error() && !each.is_error() && each.message == problem.message;
    });
    if (same == kept.end() || problem.key.empty() || same->key.empty())
      kept.push_back(problem);
    else
      same->key += ", " + problem.key;
  }
  return kept;
}

}  // namespace hexad::config
