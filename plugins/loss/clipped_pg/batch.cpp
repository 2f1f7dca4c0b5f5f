#include "batch.hpp"

#include <vector>

#include "terms.hpp"

namespace clipped_pg {

void compute_on_host(const Options& options, const Batch& batch, double* loss, double* metrics) {
  std::vector<Sequence> all;
  std::vector<TokenSums> sums;
  TokenSums whole;
  for (int64_t row = 0; row < batch.sequences; ++row) {
    Sequence& sequence = all.emplace_back(sequence_of(batch, row));
    TokenSums& tokens = sums.emplace_back();
    for (size_t t = 0; t < sequence.size(); ++t) add_token(sequence, t, tokens);
    sequence.sums = sequence_sums(sequence, tokens);
    whole.positive += tokens.positive, whole.positive_tokens += tokens.positive_tokens;
  }
  // NeMo-RL takes the mean over rewarded tokens within a padded micro-batch, and within each sequence of a packed one.
  Totals totals;
  if (batch.padded) totals.positive_nll = whole.positive / denominator(whole.positive_tokens);
  for (size_t row = 0; row < all.size(); ++row) {
    const Sequence& sequence = all[row];
    const TokenSums& mean_over = batch.padded ? whole : sums[row];
    if (!batch.padded) totals.positive_nll += mean_over.positive / denominator(mean_over.positive_tokens);
    double by_ratio = 0;
    for (size_t t = 0; t < sequence.size(); ++t) by_ratio += add_actor(options, sequence, t, totals);
    if (options.sequence_ratios)
      for (size_t t = 0; t < sequence.size(); ++t) spread_gradient(sequence, t, by_ratio);
    for (size_t t = 0; t < sequence.size(); ++t) add_others(options, sequence, t, mean_over.positive_tokens, totals);
    add_sequence(options, sequence, totals);
  }
  conclude(options, totals, batch.padded, batch.per_sequence, loss, metrics);
}

}  // namespace clipped_pg
