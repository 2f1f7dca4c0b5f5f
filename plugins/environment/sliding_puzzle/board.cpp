#include "board.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace sliding_puzzle {

std::optional<Board> Board::of(std::vector<int64_t> tiles) {
  int64_t size = 2;
  while (size < 16 && size * size < static_cast<int64_t>(tiles.size())) ++size;
  if (size * size != static_cast<int64_t>(tiles.size())) return std::nullopt;
  std::vector<int64_t> wanted(tiles.size()), sorted = tiles;
  std::iota(wanted.begin(), wanted.end(), 0);
  std::sort(sorted.begin(), sorted.end());
  if (sorted != wanted) return std::nullopt;
  const int64_t gap = std::find(tiles.begin(), tiles.end(), 0) - tiles.begin();
  return Board(std::move(tiles), size, gap);
}

bool Board::solved() const {
  for (size_t i = 0; i + 1 < tiles_.size(); ++i)
    if (tiles_[i] != static_cast<int64_t>(i) + 1) return false;
  return true;
}

std::optional<int64_t> Board::slide(std::string_view direction) {
  const int64_t row = gap_ / size_, column = gap_ % size_;
  if (direction == "up") return slide(row + 1, column);
  if (direction == "down") return slide(row - 1, column);
  if (direction == "left") return slide(row, column + 1);
  if (direction == "right") return slide(row, column - 1);
  return std::nullopt;
}

std::optional<int64_t> Board::slide(int64_t row, int64_t column) {
  const bool inside = row >= 0 && row < size_ && column >= 0 && column < size_;
  if (!inside || std::abs(row - gap_ / size_) + std::abs(column - gap_ % size_) != 1) return std::nullopt;
  const int64_t from = row * size_ + column;
  std::swap(tiles_[from], tiles_[gap_]);
  return tiles_[std::exchange(gap_, from)];
}

std::string Board::text() const {
  std::string text;
  for (size_t i = 0; i < tiles_.size(); ++i) {
    text += tiles_[i] == 0 ? "." : std::to_string(tiles_[i]);
    text += (static_cast<int64_t>(i) + 1) % size_ == 0 ? '\n' : ' ';
  }
  return text;
}

}  // namespace sliding_puzzle
