// One sequence of a batch, without its first position, which has no log-prob.
#pragma once
#include <cmath>
#include <span>

#include "numbers.hpp"
#include "options.hpp"

namespace clipped_pg {

// The values of one token; `mask` is token_mask. `held` is `current` where that lets no gradient through; `moved` is
// how far `unfiltered` is from what it is there, 0 in a run.
struct Token {
  double current, unfiltered, held, moved, previous, generation, reference, advantage, mask;
};

// What is one number a sequence.
struct SequenceSums {
  double tokens = 0;          // sum of the mask
  double ratio = 1;           // GSPO: exp of the mean log-ratio current - previous
  double weight = 1;          // GSPO: importance weight, exp of the sum of previous - generation
  double mean_log_drift = 0;  // seq-mask-tis: mean of previous - generation
};

// Views of a sequence's arrays; those that the options do not need are empty.
struct Sequence {
  std::span<const float> logprobs, unfiltered, held, held_unfiltered, previous, generation, reference, advantages, mask;
  std::span<float> grad, grad_unfiltered;  // of the loss; the second is empty if `unfiltered` is
  double sample_mask = 1;
  double reward = 0;
  double per_token = 1;           // 1 / global token count
  double per_sequence = 1;        // 1 / global sequence count
  double per_positive_token = 0;  // 1 / global count of tokens of rewarded sequences
  SequenceSums sums;

  CLIPPED_PG_BOTH size_t size() const { return logprobs.size(); }

  // True if the sampling filter (top-k, top-p) removes the token under the current policy. NeMo-RL takes 0 for its
  // log-prob and goes on counting it; it has no gradient.
  CLIPPED_PG_BOTH bool removed(size_t t) const { return logprobs[t] == -INFINITY; }

  // Without `previous` the previous policy is the current one, held.
  CLIPPED_PG_BOTH Token token(size_t t) const {
    Token token;
    token.current = removed(t) ? 0 : logprobs[t];
    token.mask = mask[t];
    token.unfiltered = unfiltered.empty() ? token.current : unfiltered[t];
    token.held = held.empty() || removed(t) ? token.current : held[t];
    if (unfiltered.empty()) {
      token.moved = held.empty() ? 0 : token.current - token.held;
    } else {
      token.moved = held_unfiltered.empty() ? 0 : token.unfiltered - held_unfiltered[t];
    }
    token.previous = previous.empty() ? token.held : previous[t];
    token.generation = generation[t];
    token.reference = reference.empty() ? 0 : reference[t];
    token.advantage = advantages[t];
    return token;
  }

  // A token's share in a mean over the tokens of the global batch.
  CLIPPED_PG_BOTH double token_weight(const Token& token) const { return token.mask * sample_mask * per_token; }
  // Its share in the loss: the same, or in the mean over sequences of the means over their tokens.
  CLIPPED_PG_BOTH double loss_weight(const Options& options, const Token& token) const {
    if (options.token_level) return token_weight(token);
    return token.mask / denominator(sums.tokens) * sample_mask * per_sequence;
  }
};

// Sums over tokens, from which SequenceSums are made.
struct TokenSums {
  double tokens = 0, log_ratio = 0, drift = 0;
};

CLIPPED_PG_BOTH void add_token(const Sequence& sequence, size_t t, TokenSums& sums) {
  const Token token = sequence.token(t);
  sums.tokens += token.mask;
  sums.log_ratio += (token.current - token.previous) * token.mask;
  sums.drift += (token.previous - token.generation) * token.mask;
}

CLIPPED_PG_BOTH SequenceSums sequence_sums(const Sequence& sequence, const TokenSums& tokens) {
  const double count = denominator(tokens.tokens);
  return {tokens.tokens, exp_f32(tokens.log_ratio / count),
          finite_or_zero(exp_f32(tokens.drift * sequence.sample_mask)), tokens.drift / count};
}

}  // namespace clipped_pg
