// Boards for the sliding puzzle: solved ones that were shuffled by random moves, so that each can be solved.
#include <algorithm>
#include <numeric>

#include "lib/base/error.hpp"
#include "core/data/dataset/procedural.hpp"
#include "core/data/dataset/procedural_spec.hpp"

namespace hexad::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kQuestion =
    "A sliding puzzle: a square board of {0} by {0} with numbered tiles and one gap, shown as a dot. "
    "A tile beside the gap can slide into it.\n"
    "{1}\n"
    "The goal: the numbers from 1 on in order, row by row, and the gap at the bottom right.\n"
    "Actions: up, down, left, right (a tile slides in that direction into the gap), "
    "slide <row> <column> (of a tile, from 1), view.\n"
    "Think step by step, then give one action: <action>up</action>";

// Row by row, 0 the gap.
std::vector<int64_t> shuffled(int64_t size, int64_t moves, CounterRandom& random) {
  std::vector<int64_t> tiles(static_cast<size_t>(size * size));
  std::iota(tiles.begin(), tiles.end(), 1);
  tiles.back() = 0;
  int64_t gap = size * size - 1;
  for (; moves > 0; --moves) {
    std::vector<int64_t> neighbours;
    if (gap % size > 0) neighbours.push_back(gap - 1);
    if (gap % size < size - 1) neighbours.push_back(gap + 1);
    if (gap >= size) neighbours.push_back(gap - size);
    if (gap < size * (size - 1)) neighbours.push_back(gap + size);
    const int64_t next = neighbours[random.below(neighbours.size())];
    std::swap(tiles[static_cast<size_t>(gap)], tiles[static_cast<size_t>(next)]);
    gap = next;
  }
  return tiles;
}

}  // namespace

DatasetSplit make_sliding_puzzle(const Json& spec, uint64_t seed) {
  ProceduralSpec keys(spec, "sliding_puzzle");
  const auto [smallest, largest] = keys.range("length", {2, 3}, 2);
  const int64_t most_moves = keys.integer("shuffle_moves", 10, 1, 10'000);
  const std::string question = keys.text("question", kQuestion);
  const Sizes sizes = read_sizes(keys);
  keys.finish();
  if (largest > 16) keys.refuse("length", "boards of 2 to 16 tiles a side");

  return draw("sliding_puzzle", sizes, seed, [&, smallest = smallest, largest = largest](CounterRandom& random) {
    const int64_t size = smallest + static_cast<int64_t>(random.below(static_cast<uint64_t>(largest - smallest) + 1));
    // An odd number of moves never leads back to where it began.
    const int64_t moves = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(most_moves)));
    const std::vector<int64_t> tiles = shuffled(size, moves + (moves % 2 == 0), random);
    std::string shown;
    Json grid = Json::array();
    for (int64_t i = 0; i < size * size; ++i) {
      const int64_t tile = tiles[static_cast<size_t>(i)];
      if (i % size == 0) grid.push_back(Json::array());
      grid.back().push_back(tile);
      shown += (i == 0 ? "" : i % size == 0 ? "\n" : " ") + (tile == 0 ? std::string(".") : fmt::to_string(tile));
    }
    Question drawn;
    drawn.key = shown;
    drawn.text = format_template(question, {fmt::to_string(size), shown}, "sliding_puzzle: question");
    drawn.metadata = {{"grid", grid}};
    return drawn;
  });
}

}  // namespace hexad::data
