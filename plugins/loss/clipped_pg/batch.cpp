#include "batch.hpp"

#include "terms.hpp"

namespace clipped_pg {

void compute_on_host(const Options& options, const Batch& batch, double* loss, double* metrics) {
  Totals totals;
  for (int64_t row = 0; row < batch.sequences; ++row) {
    Sequence sequence = sequence_of(batch, row);
    TokenSums tokens;
    for (size_t t = 0; t < sequence.size(); ++t) add_token(sequence, t, tokens);
    sequence.sums = sequence_sums(sequence, tokens);
    double by_ratio = 0;
    for (size_t t = 0; t < sequence.size(); ++t) by_ratio += add_actor(options, sequence, t, totals);
    if (options.sequence_ratios)
      for (size_t t = 0; t < sequence.size(); ++t) spread_gradient(sequence, t, by_ratio);
    for (size_t t = 0; t < sequence.size(); ++t) add_others(options, sequence, t, totals);
    add_sequence(options, sequence, totals);
  }
  conclude(options, totals, batch.per_sequence, loss, metrics);
}

}  // namespace clipped_pg
