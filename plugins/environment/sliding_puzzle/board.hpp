// The sliding puzzle: numbered tiles on a square board with one gap, into which a neighbour of it slides.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sliding_puzzle {

class Board {
 public:
  // Rows of tiles, 0 the gap. Nothing unless they are a square of 2 to 16, with every number from 0 on once.
  static std::optional<Board> of(std::vector<int64_t> tiles);

  bool solved() const;  // 1, 2, 3, ... row by row, the gap at last
  // The number that slides into the gap; nothing if none can. Directions are the tile's: "up", "down", "left", "right".
  std::optional<int64_t> slide(std::string_view direction);
  std::optional<int64_t> slide(int64_t row, int64_t column);  // from 0; of the tile

  // A line a row, the gap as a dot.
  std::string text() const;
  const std::vector<int64_t>& tiles() const { return tiles_; }

 private:
  Board(std::vector<int64_t> tiles, int64_t size, int64_t gap) : tiles_(std::move(tiles)), size_(size), gap_(gap) {}

  std::vector<int64_t> tiles_;
  int64_t size_, gap_;
};

}  // namespace sliding_puzzle
