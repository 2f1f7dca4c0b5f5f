#include "app/console/result.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

#include <fmt/format.h>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/text/text_width.hpp"

namespace hexad::console {
namespace {

namespace fs = std::filesystem;

// As a shell reads one word.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  return "'" + replaced(word, "'", "'\\''") + "'";
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace

std::vector<NextStep> next_steps(const fs::path& file, const std::string& algorithm, const fs::path& model,
                                 const fs::path& run) {
  std::vector<NextStep> steps;
  if (!fs::exists(file)) return steps;
  std::istringstream text(read_file(file));
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (trimmed(line).empty() || line.starts_with('#')) continue;
    const size_t first = line.find('|'), second = first == line.npos ? first : line.find('|', first + 1);
    if (second == line.npos)
      fail(ErrorKind::data, "{}:{}: wanted `ALGORITHMS | WHAT | COMMAND`, got '{}'", file.string(), number, line);
    const std::vector<std::string> algorithms = words_of(line.substr(0, first));
    if (std::ranges::find(algorithms, algorithm) == algorithms.end()) continue;
    std::string command(trimmed(line.substr(second + 1)));
    command = replaced(replaced(command, "{model}", quoted(model.string())), "{run}", quoted(run.string()));
    steps.push_back({std::string(trimmed(line.substr(first + 1, second - first - 1))), command});
  }
  return steps;
}

std::vector<std::string> lines_of(const std::vector<NextStep>& steps, size_t width) {
  size_t widest = 0;
  for (const NextStep& step : steps) widest = std::max(widest, text::text_width(step.what));
  std::vector<std::string> lines;
  for (const NextStep& step : steps) {
    std::string line = fmt::format("  {}  ", text::padded(step.what, widest));
    const bool has_quotes = step.command.find('\'') != step.command.npos;  // words with blanks in them
    if (width == 0 || has_quotes || text::text_width(line + step.command) <= width) {
      lines.push_back(line + step.command);
      continue;
    }
    bool has_word = false;
    for (const std::string& word : words_of(step.command)) {
      if (has_word && text::text_width(line + " " + word + " \\") > width) {
        lines.push_back(line + " \\");
        line = "      ";
        has_word = false;
      }
      line += (has_word ? " " : "") + word;
      has_word = true;
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace hexad::console
