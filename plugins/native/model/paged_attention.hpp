// Attention over the paged cache in ATen operators: the reference for the CPU's kernel, and what other devices run. And
// how the rows of a step are cut into its batched calls.
#pragma once
#include <cstdint>
#include <vector>

#include "modeling/family/transformer.hpp"
#include "plugins/native/model/kv_cache.hpp"
#include "plugins/native/schedule/scheduler.hpp"

namespace hexad::native {

// B pieces of sequences that are run as one batch of shape [B, queries] against [B, blocks * block_size] keys.
struct AttentionGroup {
  int64_t pieces = 0, queries = 0, blocks = 0;
  int64_t first = 0;               // place of the first row, behind fillers that repeat it: only where B is 1
  std::vector<int64_t> rows;       // [B * queries]: rows of the step; fillers behind them repeat the piece's last one
  std::vector<int64_t> positions;  // [B * queries] of those rows in their sequences
  std::vector<int64_t> last;       // [B]: largest position of the piece
  std::vector<int64_t> table;      // [B * blocks]: blocks of the cache; a filler repeats the sequence's last one
};

// Of a group of more than one piece: keys that are gathered, and products of queries and keys (of one head).
struct GroupLimits {
  int64_t keys, scores;
};

// Pieces of similar numbers of rows and keys are batched: none has less than half of its group's. Rows that wait for
// one token are with their like alone.
std::vector<AttentionGroup> group_by_length(const Step& step, int64_t block_size, const GroupLimits& limits);

// Deterministic mode: one group for every kTile positions of a sequence, aligned to multiples of kTile, so that shapes,
// and a row's place in them, depend on nothing but the position: libraries sum some rows of a product in another order.
inline constexpr int64_t kTile = 16;
std::vector<AttentionGroup> group_by_position(const Step& step, int64_t block_size);

class PagedAttention : public modeling::Attention {
 public:
  // For the rows of `step`. `config` and `cache` are borrowed. Deterministic: what a row gets does not depend on the
  // other rows of the step.
  PagedAttention(const modeling::ModelConfig& config, const Step& step, KvCache& cache, bool deterministic);
  at::Tensor attend(int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) override;

 private:
  struct Group {
    int64_t pieces, queries, blocks;
    at::Tensor rows, positions, last, table;  // of AttentionGroup, on the device
  };
  at::Tensor attend_group(const Group& group, int64_t layer, const at::Tensor& q) const;

  const modeling::ModelConfig& config_;
  KvCache& cache_;
  at::Tensor heads_;             // int64 [Hkv]
  at::Tensor blocks_, offsets_;  // int64 [T, 1]: where each row's key and value go
  std::vector<Group> groups_;
  at::Tensor order_;  // int64 [T]: a row's place in the groups' results, one after the other
};

}  // namespace hexad::native
