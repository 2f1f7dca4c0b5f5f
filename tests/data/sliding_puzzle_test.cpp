// Boards of the sliding puzzle: whole, shuffled, shown in the question, and never on both sides.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/base/error.hpp"
#include "core/data/dataset/procedural.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using namespace hexad::data;
using Json = nlohmann::ordered_json;
using plugin_test::contains;
using plugin_test::error_of;

TEST_CASE("a board has every tile once, is not solved, and its question shows it") {
  const DatasetSplit split = make_sliding_puzzle(
      Json{{"length", {2, 4}}, {"shuffle_moves", 6}, {"size", 60}, {"validation_size", 12}, {"question", "{0}:\n{1}"}},
      5);
  REQUIRE(split.validation);
  CHECK(split.validation->records.size() == 12);
  std::set<Json> train;
  std::set<size_t> sides;
  for (const Record& record : split.train.records) {
    const Json& grid = record.metadata.at("grid");
    std::vector<int> tiles;
    std::string shown = fmt::format("{}:", grid.size());
    for (const Json& row : grid) {
      REQUIRE(row.size() == grid.size());
      for (const Json& tile : row) {
        tiles.push_back(tile);
        shown += (&tile == &row[0] ? "\n" : " ") + (tile == 0 ? std::string(".") : tile.dump());
      }
    }
    CHECK(record.messages[0].at("content") == shown);
    CHECK_FALSE((std::is_sorted(tiles.begin(), tiles.end() - 1) && tiles.back() == 0));
    std::sort(tiles.begin(), tiles.end());
    for (size_t i = 0; i < tiles.size(); ++i) CHECK(tiles[i] == static_cast<int>(i));
    train.insert(grid);
    sides.insert(grid.size());
  }
  CHECK(train.size() == 60);
  CHECK(sides == std::set<size_t>{2, 3, 4});
  for (const Record& record : split.validation->records) CHECK_FALSE(train.contains(record.metadata.at("grid")));
}

TEST_CASE("boards too large and moves that are none are refused") {
  CHECK(contains(error_of([] {
                   make_sliding_puzzle(Json{{"length", {2, 17}}}, 1);
                 }),
                 "dataset sliding_puzzle: length: want boards of 2 to 16 tiles a side, got [2,17]"));
  CHECK(contains(error_of([] {
                   make_sliding_puzzle(Json{{"shuffle_moves", 0}}, 1);
                 }),
                 "shuffle_moves: want an integer"));
}
