// The sliding puzzle, through the loaded plugin: a game a sample, turn by turn.
#include <doctest/doctest.h>

#include "core/environment/plugin_environment.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using Json = nlohmann::ordered_json;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

std::unique_ptr<environment::Environment> puzzle(const Json& plugin_config = Json::object()) {
  static plugin::Registry registry({}, nullptr);
  return environment::make_plugin_environment("game", {{"plugin", "sliding_puzzle"}, {"plugin_config", plugin_config}},
                                              registry);
}

struct Turn {
  double reward = 0;
  bool invalid = false;
  std::optional<std::string> reply;
};

// What comes of these responses, one after another; the last turn is that without a reply.
std::vector<Turn> play(const environment::Environment& game, const Json& record,
                       const std::vector<std::string>& responses) {
  std::vector<Turn> turns;
  Json state;
  for (const std::string& response : responses) {
    environment::Sample sample;
    sample.response = response;
    sample.metadata = &record;
    sample.turn = static_cast<int64_t>(turns.size());
    if (!state.is_null()) sample.state = &state;
    environment::Scores scores = game.score(std::span(&sample, 1), 1);
    CHECK(scores.components.at("solved")[0] == scores.rewards[0]);
    turns.push_back({scores.rewards[0], scores.invalid[0] != 0, std::nullopt});
    if (!scores.replies[0]) break;
    turns.back().reply = scores.replies[0]->content;
    state = scores.states[0];
  }
  return turns;
}

const Json kTwoMoves = {{"grid", {{1, 2, 3}, {4, 0, 6}, {7, 5, 8}}}};

}  // namespace

TEST_CASE("sliding puzzle: moves slide tiles, and the one that solves it earns 1") {
  const auto turns = play(*puzzle(), kTwoMoves, {"I think. <action> UP </action>", "<action>slide 3 3"});
  REQUIRE(turns.size() == 2);
  CHECK(*turns[0].reply == "<environment>\nTile 5 slid into the gap.\n1 2 3\n4 5 6\n7 . 8\n</environment>\n");
  CHECK(turns[0].reward == 0);
  CHECK(turns[1].reward == 1);
  CHECK_FALSE(turns[1].reply);
  // Every direction, named by the tile's way.
  const auto around = play(*puzzle(), kTwoMoves,
                           {"<action>down</action>", "<action>right</action>", "<action>up</action>",
                            "<action>left</action>", "<action>down</action>"});
  REQUIRE(around.size() == 5);
  CHECK(contains(*around[0].reply, "Tile 2 slid into the gap.\n1 . 3\n4 2 6\n"));
  CHECK(contains(*around[1].reply, "Tile 1 slid into the gap.\n. 1 3\n"));
  CHECK(contains(*around[2].reply, "Tile 4 slid into the gap.\n4 1 3\n. 2 6\n"));
  CHECK(contains(*around[3].reply, "Tile 2 slid into the gap.\n4 1 3\n2 . 6\n"));
  CHECK(contains(*around[4].reply, "Tile 1 slid into the gap.\n4 . 3\n2 1 6\n"));
}

TEST_CASE("sliding puzzle: what is no move says so and costs none, a move that goes nowhere costs one") {
  const auto turns = play(*puzzle({{"max_moves", 2}}), kTwoMoves,
                          {"up", "<action>view</action>", "<action>jump</action>", "<action>slide 1 1</action>",
                           "<action>slide 99 x</action>", "<action>up</action>", "<action>left</action>"});
  REQUIRE(turns.size() == 6);  // the second move was the last
  CHECK(contains(*turns[0].reply, "No move was made: give one as <action>up</action>.\n1 2 3\n4 . 6\n7 5 8\n"));
  CHECK(contains(*turns[1].reply, "No move was made.\n1 2 3\n"));
  CHECK(contains(*turns[2].reply, "Unknown action. Known: up, down, left, right, slide <row> <column>, view."));
  CHECK(contains(*turns[3].reply, "No tile can slide that way.\n1 2 3\n4 . 6\n"));
  CHECK(contains(*turns[4].reply, "Unknown action."));
  CHECK_FALSE(turns[5].reply);
  CHECK(turns[5].reward == 0);
}

TEST_CASE("sliding puzzle: a record without a board is invalid, and so are settings without moves") {
  const Json records[] = {Json::object(),
                          {{"grid", 3}},
                          {{"grid", {{1, 2}, {3}}}},
                          {{"grid", {{1, 2}, {3, 3}}}},
                          {{"grid", {{1, 2}, {3, "0"}}}},
                          {{"grid", {{0}}}},
                          {{"grid", Json::array()}}};
  for (const Json& record : records) {
    const auto turns = play(*puzzle(), record, {"<action>up</action>"});
    REQUIRE(turns.size() == 1);
    CHECK_MESSAGE(turns[0].invalid, record.dump());
  }
  CHECK(contains(error_of([] { puzzle({{"max_moves", 0}}); }), "max_moves must be at least 1, got 0"));
}
