#include "plugins/native/model/attention_groups.hpp"

#include <algorithm>

namespace hexad::native {
namespace {

// Positions [start, start + count) of a sequence, which are the rows from `row` on.
struct Piece {
  const Sequence* sequence;
  int64_t row, start, count;
  int64_t last() const { return start + count - 1; }
};

void add(AttentionGroup& group, const Piece& piece) {
  ++group.pieces;
  for (int64_t i = 0; i < group.queries; ++i) {
    const int64_t used = std::clamp<int64_t>(i - group.first, 0, piece.count - 1);
    group.rows.push_back(piece.row + used);
    group.positions.push_back(piece.start + used);
  }
  group.last.push_back(piece.last());
  const std::vector<int32_t>& blocks = piece.sequence->blocks;
  for (int64_t i = 0; i < group.blocks; ++i) {
    group.table.push_back(blocks[std::min<size_t>(i, blocks.size() - 1)]);
  }
}

AttentionGroup shaped(int64_t queries, int64_t keys, int64_t block_size) {
  AttentionGroup group;
  group.queries = queries;
  group.blocks = (keys + block_size - 1) / block_size;
  return group;
}

std::vector<Piece> pieces_of(const Step& step) {
  std::vector<Piece> pieces;
  int64_t row = 0;
  for (const Chunk& chunk : step.chunks) {
    pieces.push_back({chunk.sequence, row, chunk.start, chunk.count});
    row += chunk.count;
  }
  return pieces;
}

}  // namespace

std::vector<AttentionGroup> group_by_length(const Step& step, int64_t block_size, int64_t max_keys) {
  std::vector<AttentionGroup> groups;
  std::vector<Piece> single;
  for (const Piece& piece : pieces_of(step)) {
    if (piece.count == 1) {
      single.push_back(piece);
    } else {
      add(groups.emplace_back(shaped(piece.count, piece.last() + 1, block_size)), piece);
    }
  }
  std::stable_sort(single.begin(), single.end(), [](const Piece& a, const Piece& b) { return a.start > b.start; });
  AttentionGroup* open = nullptr;
  for (const Piece& piece : single) {
    const int64_t width = open ? open->blocks * block_size : 0;
    const bool similar = 2 * (piece.last() + 1) >= width, room = open && (open->pieces + 1) * width <= max_keys;
    if (!open || !similar || !room) open = &groups.emplace_back(shaped(1, piece.last() + 1, block_size));
    add(*open, piece);
  }
  return groups;
}

std::vector<AttentionGroup> group_by_position(const Step& step, int64_t block_size) {
  std::vector<AttentionGroup> groups;
  for (const Piece& piece : pieces_of(step)) {
    for (int64_t start = piece.start; start <= piece.last();) {
      const int64_t tile_end = (start / kTile + 1) * kTile, end = std::min(tile_end, piece.last() + 1);
      AttentionGroup& group = groups.emplace_back(shaped(kTile, tile_end, block_size));
      group.first = start % kTile;
      add(group, {piece.sequence, piece.row + start - piece.start, start, end - start});
      start = end;
    }
  }
  return groups;
}

}  // namespace hexad::native
