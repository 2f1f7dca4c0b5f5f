#include "modeling/backend/router/rows.hpp"

#include <ATen/Functions.h>

namespace hexad::modeling {

RouterRows router_rows(const MicroBatch& batch, const hexad_batch& from, const TensorParallel& tp, bool stands_in) {
  const int64_t all = batch.ids.size(0), parts = tp.shards_tokens() ? tp.group.size() : 1;
  const auto options = batch.ids.options();
  at::Tensor tokens = batch.token_index.defined() ? batch.token_index : at::arange(batch.tokens, options);
  if (batch.token_rows.defined()) tokens = at::full({all}, -1, options).index_copy_(0, batch.token_rows, tokens);
  if (stands_in) tokens = at::full_like(tokens, -1);
  RouterRows rows;
  rows.tokens = tokens.narrow(0, all / parts * (parts > 1 ? tp.group.rank() : 0), all / parts);
  rows.padding = rows.tokens.lt(0);
  const at::Tensor ends =
      at::from_blob(const_cast<int64_t*>(from.cu_seqlens) + 1, {from.num_sequences}, at::kLong).to(options.device());
  rows.sequences = at::searchsorted(ends, rows.tokens.clamp_min(0), /*out_int32=*/false, /*right=*/true);
  rows.num_sequences = from.num_sequences;
  rows.stands_in = stands_in;
  return rows;
}

}  // namespace hexad::modeling
