#include "modeling/op/attention/pieces.hpp"

#include <algorithm>

namespace hexad::modeling {
namespace {

using PieceKind = AttentionPiece::Kind;

constexpr int64_t kTileQueries = 256;

// Adds the pieces of the queries at positions `queries`, over keys at positions `keys`.
void add_tile(std::vector<AttentionPiece>& pieces, const model::Range& queries, const model::Range& keys,
              const BlockShape& shape) {
  const bool windowed = shape.window > 0;
  const model::Range seen = {windowed ? std::max(keys.begin, queries.begin - shape.window + 1) : keys.begin,
                             std::min(keys.end, queries.end)};
  if (seen.begin >= seen.end) return;
  const bool diagonal = seen.begin <= queries.begin && queries.end <= keys.end &&
                        (!windowed || shape.window >= queries.end - queries.begin);
  // Keys that every query of the tile sees: those that the last one still sees and the first one sees already.
  const int64_t end = diagonal ? queries.begin : std::min(queries.begin + 1, seen.end);
  const int64_t begin = windowed ? std::max(seen.begin, queries.end - shape.window) : seen.begin;
  const auto add = [&](int64_t first, int64_t last, PieceKind kind) {
    if (first >= last) return;
    pieces.push_back({{queries.begin - shape.query_begin, queries.end - shape.query_begin},
                      {first - shape.key_begin, last - shape.key_begin},
                      kind});
  };
  if (begin >= end) {
    add(seen.begin, diagonal ? end : seen.end, PieceKind::masked);
  } else {
    add(seen.begin, begin, PieceKind::masked);
    add(begin, end, PieceKind::whole);
    if (!diagonal) add(end, seen.end, PieceKind::masked);
  }
  if (diagonal) add(queries.begin, queries.end, PieceKind::diagonal);
}

}  // namespace

std::vector<AttentionPiece> attention_pieces(int64_t queries, int64_t keys, const BlockShape& shape) {
  const model::Range all = {shape.query_begin, shape.query_begin + queries},
                     held = {shape.key_begin, shape.key_begin + keys};
  const bool aligned = held.end <= all.begin + 1 || (held.begin <= all.begin && all.end <= held.end);
  const int64_t tile = shape.window == 0 && aligned ? std::max<int64_t>(queries, 1) : kTileQueries;
  std::vector<AttentionPiece> pieces;
  for (int64_t begin = all.begin; begin < all.end; begin += tile)
    add_tile(pieces, {begin, std::min(begin + tile, all.end)}, held, shape);
  return pieces;
}

}  // namespace hexad::modeling
