#include "app/config/reference.hpp"

#include <algorithm>
#include <array>

#include "lib/base/said/printable.hpp"
#include "lib/base/text.hpp"
#include "lib/base/utf8.hpp"

namespace hexad::config {
namespace {

constexpr size_t kLineWidth = 120, kIndent = 2, kGap = 2;
constexpr size_t kColumns = 4;
constexpr std::array<size_t, kColumns - 1> kWidest = {46, 14, 14};  // of path, type, default; the meaning has the rest

using Row = std::array<std::string, kColumns>;

// Of UTF-8.
size_t characters_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// Cuts at blanks. A word longer than `width` stays whole unless it is longer than `limit`.
std::vector<std::string> wrapped_lines(const std::string& text, size_t width, size_t limit) {
  std::vector<std::string> lines;
  std::string line;
  const auto end_line = [&] {
    if (!line.empty()) lines.push_back(std::exchange(line, ""));
  };
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (characters_of(line) + 1 + characters_of(word) > width) end_line();
    while (word.size() > limit) {
      lines.emplace_back(utf8_front(word, limit));
      word.erase(0, lines.back().size());
    }
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
  }
  end_line();
  return lines;
}

// Where each column begins.
std::array<size_t, kColumns> column_starts(const std::vector<Row>& rows) {
  std::array<size_t, kColumns> starts = {kIndent};
  for (size_t column = 0; column + 1 < kColumns; ++column) {
    size_t width = 1;
    for (const Row& row : rows) width = std::max(width, characters_of(row[column]));
    starts[column + 1] = starts[column] + std::min(width, kWidest[column]) + kGap;
  }
  return starts;
}

void put_at(std::string& line, size_t start, const std::string& text) {
  line += std::string(start - characters_of(line), ' ') + text;
}

std::string row_text(const Row& row, const std::array<size_t, kColumns>& starts) {
  std::vector<std::string> lines(1);
  size_t first = 0;  // the line that the next cell begins on
  for (size_t column = 0; column < kColumns; ++column) {
    const size_t limit = kLineWidth - starts[column];
    const size_t width = column + 1 < kColumns ? starts[column + 1] - starts[column] - kGap : limit;
    const std::vector<std::string> cell = wrapped_lines(row[column], width, limit);
    if (lines.size() < first + cell.size()) lines.resize(first + cell.size());
    for (size_t i = 0; i < cell.size(); ++i) put_at(lines[first + i], starts[column], cell[i]);
    if (std::ranges::any_of(cell, [&](const std::string& line) { return characters_of(line) > width; }))
      first += cell.size();
  }
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

}  // namespace

std::string key_table(const std::vector<Key>& keys) {
  std::vector<Row> rows;
  for (const Key& key : keys) {
    rows.push_back({key.path, type_text(key), default_text(key, Form::plain), meaning_text(key, Form::plain)});
    for (std::string& cell : rows.back()) cell = one_line(replaced(cell, "\n", " "));  // a plugin's author wrote it
  }
  const std::array<size_t, kColumns> starts = column_starts(rows);
  std::string text;
  for (const Row& row : rows) text += row_text(row, starts);
  return text;
}

}  // namespace hexad::config
