// Cuts the attention of a pass into work items for a GPU. Rows that wait for one token see all of their keys; where
// neighbours start from the same blocks (samples of a group), those are read once for all of them (cascade), and each
// row's partial results are merged. Chunks of prompts are causal.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace hexad::native {

// What plans are for.
struct PlanShape {
  int64_t heads, kv_heads, block_size;
  bool share = true;  // false: every row reads all of its keys
  // n > 0: rows go on where their group's shared beginning ended, in the order of keys. It is whole tiles of n, and one
  // chunk.
  int64_t carried_tile = 0;
};

// A row of one token. It sees the first `length` positions of its blocks, its own included.
struct DecodeRow {
  const int32_t* blocks;
  int32_t length;
};

// `rows` tokens of a prompt: the last sees `length` positions, the one before it one less, and so on.
struct PromptRows {
  const int32_t* blocks;
  int32_t length, rows;
};

// One launch. Requests are runs of query rows that see the same blocks: rows [q_indptr[i], q_indptr[i + 1]). An item is
// a tile of a request's rows x (heads / kv_heads), and a chunk of its keys: chunk_size positions, the last one fewer.
struct PlanLevel {
  std::vector<int32_t> q_indptr, o_indptr, block_indptr, last_block_size, blocks;
  std::vector<int32_t> request, tile, chunk;
  int32_t chunk_size = 0;

  int64_t requests() const { return static_cast<int64_t>(last_block_size.size()); }
  int64_t items() const { return static_cast<int64_t>(request.size()); }
  void clear();
};

// Where a row's partial results are: [shared, shared + shared_count) and [own, own + own_count).
struct MergeRow {
  int32_t shared, shared_count, own, own_count;
};

struct AttentionPlan {
  // Tiles of kOwnTile, kSharedTile and kPromptTile rows x heads. own: a request for each row; its partial c lies at
  // o_indptr[i] + c. shared: the partial of row r and chunk c of n lies at o_indptr[i] + r * n + c. prompt: one chunk;
  // o_indptr is q_indptr.
  PlanLevel own, shared, prompt;
  std::vector<MergeRow> merge;  // for each decode row
  int64_t partials = 0;
};

inline constexpr int64_t kOwnTile = 16, kSharedTile = 64, kPromptTile = 128;

// Rows of the pass: first the decode rows, then those of the prompts.
void plan_attention(const PlanShape& shape, std::span<const DecodeRow> decodes, std::span<const PromptRows> prompts,
                    AttentionPlan& plan);

// No plan for so many rows has more.
struct PlanBounds {
  int64_t own_items, shared_items, prompt_items, partials;
};
PlanBounds plan_bounds(const PlanShape& shape, int64_t decode_rows, int64_t prompt_rows, int64_t prompts);

}  // namespace hexad::native
