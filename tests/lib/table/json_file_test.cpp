#include "lib/table/json_file.hpp"

#include "lib/table/line_index.hpp"
#include "tests/lib/table/support.hpp"

using namespace hexad;
using namespace table_test;

TEST_CASE("lines are found, with their numbers, whatever is blank between them") {
  const std::string text = "\n \n{1}\n{2}\r\n\n\t\f\n{3}";
  const table::LineIndex lines(*table::bytes_of_text(text), 0);
  REQUIRE(lines.size() == 3);
  const int64_t numbers[] = {3, 4, 7};
  for (int64_t i = 0; i < 3; ++i) {
    const table::Line line = lines.at(i);
    CHECK(line.number == numbers[i]);
    CHECK(text.substr(static_cast<size_t>(line.begin), 3) == fmt::format("{{{}}}", i + 1));
  }
  CHECK(table::LineIndex(*table::bytes_of_text(" \n\n"), 0).size() == 0);
}

TEST_CASE("lines that are longer than what is read at once are whole") {
  std::string text;
  for (int i = 0; i < 3; ++i)
    text += fmt::format("{{\"a\": \"{}\"}}\n\n", std::string(1'500'000, static_cast<char>('a' + i)));
  const auto rows = table::json_rows(table::bytes_of_text(text), "long.jsonl");
  REQUIRE(rows->size() == 3);
  CHECK(rows->row(2).value.at("a") == std::string(1'500'000, 'c'));
  CHECK(rows->row(2).source == "long.jsonl:5");
}

TEST_CASE("a row that is malformed is an error when it is read") {
  const auto rows = table::json_rows(table::bytes_of_text("{\"a\": 1}\n{\"a\": \n"), "rows.jsonl");
  CHECK(rows->size() == 2);
  CHECK(rows->row(0).value.at("a") == 1);
  SAYS(refusal([&] { rows->row(1); }), "rows.jsonl:2: malformed JSON");
}
