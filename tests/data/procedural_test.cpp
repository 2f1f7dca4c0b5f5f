#include "core/data/dataset/procedural.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/base/error.hpp"

using namespace hexad;
using namespace hexad::data;
using Json = nlohmann::ordered_json;

namespace {

std::string question(const Record& record) { return record.messages[0].at("content"); }

std::set<std::string> questions(const Dataset& dataset) {
  std::set<std::string> result;
  for (const Record& record : dataset.records) result.insert(question(record));
  return result;
}

// Share of the records whose answer is the most frequent one: what the best constant answer earns.
double best_constant_share(const table::Lazy<Record>& records) {
  std::map<std::string, double> counts;
  double most = 0;
  for (const Record& record : records) most = std::max(most, ++counts[record.answer]);
  return most / static_cast<double>(records.size());
}

}  // namespace

TEST_CASE("arithmetic never trains on a held-out pair, in either order or with another operator") {
  const Json spec = {{"operators", {"+", "*"}}, {"max_operand", 9}, {"size", 120},
                     {"validation_size", 20},   {"held_out", 0.2},  {"question", "{0}{1}{2}="}};
  const DatasetSplit split = make_arithmetic(spec, 7);
  REQUIRE(split.validation);
  CHECK(split.train.records.size() == 120);
  CHECK(split.validation->records.size() == 20);
  const auto pair_of = [](const std::string& text) { return std::minmax(text[0], text[2]); };
  std::set<std::pair<char, char>> held_out;
  for (const Record& record : split.validation->records) held_out.insert(pair_of(question(record)));
  for (const Record& record : split.train.records) {
    const std::string text = question(record);
    CHECK_FALSE(held_out.contains(pair_of(text)));
    const int a = text[0] - '0', b = text[2] - '0';
    CHECK(record.answer == fmt::to_string(text[1] == '+' ? a + b : a * b));
  }
  CHECK(questions(split.train).size() == 120);
}

TEST_CASE("procedural datasets depend on their seed alone") {
  const Json spec = {{"kind", "sort_digits"}, {"size", 50}, {"validation_size", 10}};
  const DatasetSplit first = make_puzzle(spec, 3), again = make_puzzle(spec, 3), other = make_puzzle(spec, 4);
  CHECK(question(first.train.records[49]) == question(again.train.records[49]));
  CHECK(questions(first.train) != questions(other.train));
}

TEST_CASE("every kind of puzzle has right answers and disjoint sides") {
  for (const auto& [kind, describes] : puzzle_kinds()) {
    CAPTURE(kind);
    const DatasetSplit split =
        make_puzzle(Json{{"kind", kind}, {"size", 40}, {"validation_size", 8}, {"held_out", 0.3}}, 1);
    REQUIRE(split.validation);
    const std::set<std::string> train = questions(split.train);
    CHECK(train.size() == 40);
    for (const Record& record : split.validation->records) CHECK_FALSE(train.contains(question(record)));
    for (const Record& record : split.train.records) CHECK_FALSE(record.answer.empty());
  }
  const auto answer = [](const Json& spec) {
    const Record record = make_puzzle(spec, 5).train.records[0];
    return std::pair{question(record), record.answer};
  };
  const auto [digits, sorted] = answer({{"kind", "sort_digits"}, {"question", "{}"}});
  std::string expected = digits;
  std::sort(expected.begin(), expected.end());
  CHECK(sorted == expected);
  const auto [text, reversed] = answer({{"kind", "reverse"}, {"question", "{}"}});
  CHECK(reversed == std::string(text.rbegin(), text.rend()));
  const auto [letters, count] = answer({{"kind", "count_letter"}, {"question", "{0}{1}"}});
  CHECK(count == fmt::to_string(std::count(letters.begin(), letters.end() - 1, letters.back())));
  const auto [bits, parity] = answer({{"kind", "parity"}, {"question", "{}"}});
  CHECK(parity == (std::count(bits.begin(), bits.end(), '1') % 2 ? "odd" : "even"));
  const auto [series, next] = answer({{"kind", "successor"}, {"question", "{}"}, {"alphabet", "abcdefgh"}});
  CHECK(next[0] == (series.back() == 'h' ? 'a' : series.back() + 1));
}

TEST_CASE("procedural specifications are checked") {
  CHECK_THROWS_WITH_AS(make_puzzle({{"kind", "sucessor"}}, 1), doctest::Contains("did you mean 'successor'?"), Error);
  CHECK_THROWS_WITH_AS(make_puzzle({{"kind", "copy"}, {"lenght", 3}}, 1),
                       doctest::Contains("unknown key 'lenght', did you mean 'length'?"), Error);
  CHECK_THROWS_WITH_AS(make_puzzle({{"kind", "copy"}, {"alphabet", "aa"}}, 1),
                       doctest::Contains("alphabet: want two or more different"), Error);
  CHECK_THROWS_WITH_AS(make_puzzle({{"kind", "copy"}, {"length", {4, 2}}}, 1),
                       doctest::Contains("length: want a number"), Error);
  CHECK_THROWS_WITH_AS(make_puzzle({{"kind", "larger_digit"}, {"size", 100}}, 1),
                       doctest::Contains("distinct ones were found"), Error);
  CHECK_THROWS_WITH_AS(make_arithmetic({{"operators", {"/"}}}, 1),
                       doctest::Contains("operators: want a list of +, - and *"), Error);
  CHECK_THROWS_WITH_AS(make_arithmetic({{"question", "{0} {3}"}}, 1), doctest::Contains("replacement field 4 of 3"),
                       Error);
}

TEST_CASE("the quickstart task cannot be earned by a constant answer") {
  const Json spec = {{"kind", "successor"}, {"question", "{0}="}, {"size", 2048}, {"validation_size", 256}};
  const DatasetSplit split = make_puzzle(spec, 42);
  REQUIRE(split.validation);
  CHECK(split.train.records.size() == 2048);
  CHECK(split.validation->records.size() == 256);
  // Eight letters, each the answer of an eighth of all instances.
  CHECK(best_constant_share(split.train.records) < 0.15);
  CHECK(best_constant_share(split.validation->records) < 0.2);
  const std::set<std::string> train = questions(split.train);
  for (const Record& record : split.validation->records) CHECK_FALSE(train.contains(question(record)));
}
