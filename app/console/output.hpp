// Where a console writes: a terminal with its width and colours, or a file or pipe.
#pragma once
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace hexad::console {

enum class Style { bold, dim, red, green, yellow };

// Words of a text that are shown in a style, where it first has them.
struct Mark {
  std::string words;
  Style style = Style::bold;
};

class Output {
 public:
  explicit Output(std::FILE* file);

  // It obeys control characters: TERM=dumb does not.
  bool is_terminal() const { return terminal_; }
  // A terminal's columns now, 80 where it does not say.
  size_t width() const;
  // `text` with its marks, where shows_colours().
  std::string marked(std::string text, std::span<const Mark> marks) const;
  // What cannot be written is left out: its reader may have gone, and its disk be full. A run does not end for that.
  void put(const std::string& text) const;

 private:
  std::FILE* file_;
  bool terminal_, coloured_;
};

// Whether `file` is a terminal that shows colours (TERM=dumb does not) and whose user wants them
// (https://no-color.org: NO_COLOR is not set, or empty).
bool shows_colours(std::FILE* file);

}  // namespace hexad::console
