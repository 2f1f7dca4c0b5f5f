// The sliding puzzle as a conversation (NeMo-RL's example of several turns): a response moves one tile, the reply says
// what came of it. Reward 1 for the move that solves the puzzle. Records have "grid": rows of numbers, 0 the gap, as
// dataset_name: sliding_puzzle makes them.
//
// env.<name>: {plugin: sliding_puzzle, plugin_config: {max_moves: 30}}; grpo.max_rollout_turns above 1
#include <hexad/environment.hpp>

#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "board.hpp"

namespace sliding_puzzle {
namespace {

using namespace hexad::sdk;

std::optional<Board> start_of(std::string_view metadata) {
  const auto record = nlohmann::json::parse(metadata, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.contains("grid") || !record.at("grid").is_array()) return std::nullopt;
  std::vector<int64_t> tiles;
  for (const auto& row : record.at("grid")) {
    if (!row.is_array() || row.size() != record.at("grid").size()) return std::nullopt;
    for (const auto& tile : row) {
      if (!tile.is_number_integer()) return std::nullopt;
      tiles.push_back(tile.get<int64_t>());
    }
  }
  return Board::of(std::move(tiles));
}

// Between two turns: the number of moves, then the tiles.
struct Game {
  int64_t moves = 0;
  Board board;

  std::string text() const {
    std::string text = std::to_string(moves);
    for (const int64_t tile : board.tiles()) text += ' ' + std::to_string(tile);
    return text;
  }
  static std::optional<Game> of(const SampleView& sample) {
    std::optional<Board> board;
    int64_t moves = 0;
    if (sample.turn() == 0) {
      board = start_of(sample.metadata());
    } else {
      std::istringstream state{std::string(sample.state())};
      std::vector<int64_t> tiles;
      state >> moves;
      for (int64_t tile = 0; state >> tile;) tiles.push_back(tile);
      board = Board::of(std::move(tiles));
    }
    return board ? std::optional(Game{moves, std::move(*board)}) : std::nullopt;
  }
};

// In the last <action>, whose end a stop string may have taken; lower case, without white space around it.
std::optional<std::string> action_of(std::string_view response) {
  std::string text(response);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return c < 128 ? std::tolower(c) : c; });
  const size_t open = text.rfind("<action>");
  if (open == text.npos) return std::nullopt;
  text = text.substr(open + 8);
  text = text.substr(0, text.find("</action>"));
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

class SlidingPuzzle {
 public:
  static constexpr const char* components[] = {"solved"};

  SlidingPuzzle(const Call&, const Config& config) : max_moves_(config.get("max_moves", int64_t{30})) {
    if (max_moves_ < 1) fail(HEXAD_INVALID_ARGUMENT, "max_moves must be at least 1, got %g", double(max_moves_));
  }

  void score(const Call&, const SampleView& sample, ScoreOut& out) const {
    std::optional<Game> game = Game::of(sample);
    if (!game) return out.set_invalid();  // the record is to blame, not the response
    const std::string said = play(action_of(sample.response()), *game);
    const bool solved = game->board.solved();
    out.reward() = out.component(0) = solved;
    if (solved || game->moves >= max_moves_) return;
    out.keep(game->text());
    out.reply("<environment>\n" + said + "\n" + game->board.text() + "</environment>\n");
  }

 private:
  static std::string play(const std::optional<std::string>& action, Game& game) {
    if (!action) return "No move was made: give one as <action>up</action>.";
    if (*action == "view") return "No move was made.";
    std::istringstream words(*action);
    std::string word;
    int64_t row = 0, column = 0;
    words >> word;
    const bool place =
        word == "slide" && words >> row >> column && row >= 1 && column >= 1 && row < 100 && column < 100;
    if (!place && word != "up" && word != "down" && word != "left" && word != "right")
      return "Unknown action. Known: up, down, left, right, slide <row> <column>, view.";
    ++game.moves;
    const auto tile = place ? game.board.slide(row - 1, column - 1) : game.board.slide(word);
    return tile ? "Tile " + std::to_string(*tile) + " slid into the gap." : "No tile can slide that way.";
  }

  int64_t max_moves_;
};

}  // namespace
}  // namespace sliding_puzzle

HEXAD_CPP_ENVIRONMENT(sliding_puzzle::SlidingPuzzle, "sliding_puzzle", "1.0.0", "Apache-2.0")
