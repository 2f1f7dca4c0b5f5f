#include "lib/base/json.hpp"

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"

using namespace hexad;
using Ordered = nlohmann::ordered_json;

namespace {

// A file that is gone when the case ends.
struct ScratchFile {
  explicit ScratchFile(const std::string& content) { std::ofstream(path) << content; }
  ~ScratchFile() { std::filesystem::remove(path); }
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("hexad_json_test_" + std::to_string(::getpid()));
};

}  // namespace

TEST_CASE("text becomes the value it stands for, in the order of its keys where that is asked") {
  CHECK(parse_json<nlohmann::json>(R"({"b": 1, "a": 2})").begin().key() == "a");
  CHECK(parse_json<Ordered>(R"({"b": 1, "a": 2})").begin().key() == "b");
  CHECK_THROWS_WITH_AS(parse_json<Ordered>("{\"a\": 1,\n]"), doctest::Contains("line 2, column 1"),
                       Ordered::parse_error);
}

TEST_CASE("nesting that would end the stack is refused") {
  const auto nested = [](int levels) { return std::string(levels, '[') + "\"]\\\"\"" + std::string(levels, ']'); };
  CHECK(json_text(Ordered(parse_json<Ordered>(nested(500)))) == nested(500));
  CHECK_THROWS_WITH_AS(parse_json<Ordered>(nested(501)), doctest::Contains("nested more than 500 levels deep"),
                       Ordered::parse_error);
  CHECK(try_parse_json<Ordered>(nested(1'000'000)).is_discarded());
  CHECK(parse_json<Ordered>("[" + nested(499) + "," + nested(499) + "]").size() == 2);
  const ScratchFile file(nested(1'000'000));
  CHECK_THROWS_WITH_AS(read_json<Ordered>(file.path), doctest::Contains("nested more than 500 levels deep"), Error);
}

TEST_CASE("text that is not JSON is nothing for try_parse_json") {
  CHECK(try_parse_json<Ordered>("[1]").is_array());
  for (const char* text : {"", "{", "[1,]", "{} x", "nul", "\"\xff\""}) {
    const auto value = try_parse_json<Ordered>(text);
    CHECK_FALSE(value.is_object());
    CHECK_FALSE(value.is_array());
    CHECK_FALSE(value.is_string());
  }
}

TEST_CASE("a watcher sees keys and refuses by throwing") {
  const auto watch = [](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (event == nlohmann::json::parse_event_t::key && value == "bad") fail(ErrorKind::data, "no bad key");
    return true;
  };
  CHECK(parse_json<nlohmann::json>(R"({"good": 1})", watch).at("good") == 1);
  CHECK_THROWS_WITH_AS(parse_json<nlohmann::json>(R"({"bad": 1})", watch), "no bad key", Error);
}

TEST_CASE("a file is named when it is missing or is not JSON") {
  const ScratchFile good(R"({"a": [1, 2]})");
  CHECK(read_json<Ordered>(good.path).at("a").size() == 2);
  CHECK(read_file(good.path) == R"({"a": [1, 2]})");
  CHECK_THROWS_WITH_AS(read_json<Ordered>("/nowhere/x.json"),
                       "/nowhere/x.json: cannot be opened: No such file or directory", Error);
  std::ofstream(good.path) << "{\"a\": }";
  CHECK_THROWS_WITH_AS(read_json<nlohmann::json>(good.path),
                       doctest::Contains((good.path.string() + ": not valid JSON: ").c_str()), Error);
  std::ofstream(good.path) << "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
  CHECK_THROWS_WITH_AS(read_json<Ordered>(good.path),
                       doctest::Contains((good.path.string() + ": it is Git LFS's pointer to the file").c_str()),
                       Error);
}

TEST_CASE("printing never throws: bytes that are not UTF-8 are replaced, what is no number is null") {
  CHECK(json_text(Ordered{{"b", 1}, {"a", "\xff!"}}) == "{\"b\":1,\"a\":\"\xEF\xBF\xBD!\"}");
  CHECK(json_text(nlohmann::json{{"b", std::nan("")}}) == R"({"b":null})");
  CHECK(json_text(Ordered{{"a", 1}}, 2) == "{\n  \"a\": 1\n}");
}

TEST_CASE("data keep their numbers as they were written, inside of lists and objects too") {
  for (const char* text :
       {"1.10", "0.50", "1e5", "1E3", "2.5e-3", "-0", "-0.0", "100.0", "123456789012345678901234567890",
        "-9223372036854775809", "18446744073709551615", "0.1", "1.7976931348623157e308"}) {
    CHECK(data_text(parse_data(text, "d")) == text);
    const std::string inside = std::string("{\"a\":[") + text + ",{\"b\":" + text + "}],\"c\":\"x\"}";
    CHECK(data_text(parse_data(inside, "d")) == inside);
  }
  const Ordered row = parse_data("{\"n\": 3, \"m\": -4, \"x\": 0.5, \"t\": \"1.10\", \"none\": null}", "d");
  CHECK(row.at("n").is_number_unsigned());
  CHECK(row.at("m") == -4);
  CHECK(row.at("x").get<double>() == 0.5);
  CHECK(data_text(row) == json_text(row));
}

TEST_CASE("data that are malformed, or say a key twice, are refused with their place") {
  const auto says = [](std::string_view text, const char* message) {
    CHECK_THROWS_WITH_AS(parse_data(text, "d.jsonl:2"), doctest::Contains(message), Error);
  };
  says("{\"a\": }", "d.jsonl:2: malformed JSON: column 7: Invalid value.");
  says("[1,\n x]", "d.jsonl:2: not JSON: line 2, column 2: Invalid value.");
  says("{\"a\": 1, \"a\": 2}", "d.jsonl:2: key 'a' stands twice in one object");
  const char* const no_json = ": NaN and Infinity are no JSON: write null, or leave the field out";
  says("{\"a\": NaN}", (std::string("d.jsonl:2: malformed JSON: column 7") + no_json).c_str());
  for (const char* number : {"Infinity", "-Infinity", "[1, NaN]"}) says(number, no_json);
  for (const std::string& number : {std::string("1e400"), std::string(400, '7'), std::string(400, '7') + ".5"})
    says(number, "malformed JSON: column 1: a number beyond 1.8e308: such a one has to be a text, in quotes");
  says("{\"a\": \"\xff\"}", "d.jsonl:2: malformed JSON: column 8: not UTF-8");
  const char* const half = "half of a surrogate pair (\\ud800 to \\udfff), which is no character: leave it out";
  for (const char* text : {"{\"a\": \"\\ud83d\"}", "{\"a\": \"\\udc80\"}", "{\"\\udfff\": 1}",
                           "{\"a\": \"\\ude00\\ud83d\"}", "\"\xc3\xa9 \\udcc3\\udca9\""})
    says(text, half);
  CHECK(parse_data("[\"\\ud83d\\ude00\", \"\\u00e9\"]", "d") == Ordered::array({"\U0001f600", "\u00e9"}));
  says(std::string(501, '['), "d.jsonl:2: nested deeper than 500 levels");
}

TEST_CASE("numbers that JSON has none for have names where null would mean something else") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(json_text(with_named_infinities({{"a", {1.5, inf, -inf, nullptr}}, {"b", std::nan("")}})) ==
        R"({"a":[1.5,"inf","-inf",null],"b":"nan"})");
  CHECK(json_text(with_named_infinities(inf)) == "\"inf\"");
}
