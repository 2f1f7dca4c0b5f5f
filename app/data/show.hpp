// What `hexad data show` prints.
#pragma once
#include <ostream>

#include "app/data/shown_row.hpp"

namespace hexad::dataset_view {

struct ShowOptions {
  int64_t rows = 3;         // so many are shown; JSON: -1 is all
  bool validation = false;  // what is validated on, in the place of what is trained on
  bool json = false;
  bool colours = false;  // ANSI's, for what trains; else it stands between {+ and +}
  Scorer score = {};     // of the rows that are shown; none: no rewards
};

// The first rows, a histogram of the lengths of all, and how many rows are dropped and why: every row is read for it,
// after the first have been printed. With `json` no more rows are read than are shown, each an object: {"source",
// "text", "token_ids", "trains", "expected"}, of a pair with "rejected": {"text", "token_ids", "trains"}, of a dropped
// row {"source", "dropped"}. With `score` the rewards of rows that are not dropped, and what they come to; JSON:
// "response", "reward" (null: none, and "no_reward" says why), "components". Texts are printable
// (lib/base/said/printable.hpp).
void show(const config::RunConfig& run, const rollout::ModelText& text, const ShowOptions& options, std::ostream& out);

}  // namespace hexad::dataset_view
