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

TEST_CASE("a large file is not taken into memory because its first row is malformed") {
  struct Counted : table::TextBytes {
    int64_t size() const override { return int64_t{65} << 20; }
    void read(int64_t offset, std::span<char> bytes) const override {
      most = std::max(most, std::ssize(bytes));
      std::ranges::fill(bytes, ' ');
      const std::string_view first = "{\"a\": 1,\n\"b\": 2}\n";
      if (offset == 0) std::copy_n(first.begin(), std::min(first.size(), bytes.size()), bytes.begin());
    }
    mutable int64_t most = 0;
  };
  auto bytes = std::make_unique<Counted>();
  const Counted& counted = *bytes;
  const auto rows = table::json_rows(std::move(bytes), "rows.jsonl");
  SAYS(refusal([&] { rows->row(0); }), "rows.jsonl:1: malformed JSON");
  CHECK(counted.most <= 1 << 20);
}

TEST_CASE("a row that is malformed is an error when it is read") {
  const auto rows = table::json_rows(table::bytes_of_text("{\"a\": 1}\n{\"a\": \n"), "rows.jsonl");
  CHECK(rows->size() == 2);
  CHECK(rows->row(0).value.at("a") == 1);
  SAYS(refusal([&] { rows->row(1); }), "rows.jsonl:2: malformed JSON");
}
