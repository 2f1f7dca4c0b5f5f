#include "core/config/schema/blocks.hpp"

namespace hexad::config {

void add_batching(Schema& s) {
  const std::string train_tokens = "${mul:${policy.max_total_sequence_length}, ${policy.train_micro_batch_size}}";
  const std::string logprob_tokens = "${mul:${policy.max_total_sequence_length}, ${policy.logprob_batch_size}}";
  s.section("policy.dynamic_batching", "micro-batches of about equal tokens (not with sequence_packing)");
  s.add("policy.dynamic_batching.enabled", kBool, "false", "form micro-batches by tokens");
  s.add("policy.dynamic_batching.train_mb_tokens", kInt, train_tokens, "most padded tokens of a training micro-batch")
      .at_least(1);
  s.add("policy.dynamic_batching.logprob_mb_tokens", kInt, logprob_tokens, "the same for log-probs").at_least(1);
  s.add("policy.dynamic_batching.sequence_length_round", kInt, "64",
        "a micro-batch's length is rounded up to a multiple")
      .at_least(1);
  s.section("policy.sequence_packing", "several sequences in one row, without padding (not with dynamic_batching)");
  s.add("policy.sequence_packing.enabled", kBool, "false", "pack sequences");
  s.add("policy.sequence_packing.train_mb_tokens", kInt, train_tokens, "most tokens of a row in training").at_least(1);
  s.add("policy.sequence_packing.logprob_mb_tokens", kInt, logprob_tokens, "the same for log-probs").at_least(1);
  s.add("policy.sequence_packing.algorithm", kText, "modified_first_fit_decreasing", "how sequences are put together")
      .one_of({"concatenative", "first_fit_decreasing", "first_fit_shuffle", "modified_first_fit_decreasing",
               "modified_ffd"});
  s.add("policy.sequence_packing.microbatch_order", kText, "packer", "order of the rows of a rank")
      .one_of({"packer", "largest_first"});
  s.add("policy.sequence_packing.sequence_length_round", kInt, "64", "of dynamic batching")
      .accepted("packed sequences are padded to policy.make_sequence_length_divisible_by, in NeMo-RL too");
  s.add("policy.sequence_packing.fuse_loss", kBool, "false", "one loss call for all sequences of a row")
      .accepted("the loss always sees all sequences of a micro-batch in one call");
}

}  // namespace hexad::config
