#include "app/console/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

namespace hexad::console {
namespace {

bool obeys(std::FILE* file) {
  const char* kind = std::getenv("TERM");
  return ::isatty(::fileno(file)) != 0 && !(kind && std::string_view(kind) == "dumb");
}

int code_of(Style style) {
  switch (style) {
    case Style::bold: return 1;
    case Style::dim: return 2;
    case Style::red: return 31;
    case Style::green: return 32;
    case Style::yellow: return 33;
  }
  return 0;
}

}  // namespace

bool shows_colours(std::FILE* file) {
  const char* none = std::getenv("NO_COLOR");
  return obeys(file) && !(none && *none);
}

Output::Output(std::FILE* file) : file_(file), terminal_(obeys(file)), coloured_(shows_colours(file)) {}

size_t Output::width() const {
  winsize size{};
  return ::ioctl(::fileno(file_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string Output::marked(std::string text, std::span<const Mark> marks) const {
  if (!coloured_) return text;
  for (const Mark& mark : marks) {
    const size_t at = mark.words.empty() ? text.npos : text.find(mark.words);
    if (at == text.npos) continue;  // it was broken between two lines
    text.replace(at, mark.words.size(), fmt::format("\033[{}m{}\033[0m", code_of(mark.style), mark.words));
  }
  return text;
}

void Output::put(const std::string& text) const {
  std::fwrite(text.data(), 1, text.size(), file_);
  std::fflush(file_);
  std::clearerr(file_);
}

}  // namespace hexad::console
