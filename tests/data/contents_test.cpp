// What is said of samples that count nowhere, or otherwise than they stand in the data.
#include "core/data/dataset/contents.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

using namespace hexad;
using namespace hexad::data;

namespace {

Datum conversation(std::vector<float> mask, float loss_multiplier = 1) {
  Datum datum;
  datum.token_ids.resize(mask.size());
  datum.token_mask = std::move(mask);
  datum.loss_multiplier = loss_multiplier;
  return datum;
}

Contents counted(int64_t size, int64_t too_long = 0, int64_t untrained = 0) {
  return {size, size, too_long, untrained, 0, ""};
}

}  // namespace

TEST_CASE("samples that are too long, and conversations in which nothing trains, are counted apart") {
  const std::vector<Datum> all = {conversation({0, 1}), conversation({0, 0}), conversation({0, 0}, 0), Datum()};
  const Contents contents = contents_of({table::Lazy<Datum>(all)});
  CHECK(contents.size == 4);
  CHECK(contents.too_long == 1);
  CHECK(contents.untrained == 1);  // a prompt has no mask
  CHECK(too_long_notice(contents, "conversations", 2) ==
        "1 of 4 conversations do not fit into 2 tokens (data.max_input_seq_length): cut short, they count nowhere");
  CHECK(too_long_notice(contents, "prompts", 2, /*scored=*/true) ==
        "1 of 4 prompts do not fit into 2 tokens (data.max_input_seq_length): cut short, they are answered and count "
        "as they are");
  CHECK(untrained_notice(contents, "conversations") ==
        "in 1 of 4 conversations the assistant says nothing: they train nothing");
  CHECK(too_long_notice(counted(3), "prompts", 2) == "");
  CHECK(untrained_notice(counted(3), "prompts") == "");
}

TEST_CASE("metadata are known by their values, however their numbers are written: so older checkpoints know them") {
  const auto fingerprint = [](const nlohmann::ordered_json& metadata) {
    Datum row;
    row.metadata = metadata;
    return contents_of({table::Lazy<Datum>({row})}).fingerprint;
  };
  const auto of = [&](const std::string& text) { return fingerprint(parse_data(text, "row")); };
  for (const char* text : {R"({"weight": 0.50, "scale": 1e5, "big": 123456789012345678901234567890})", "{}",
                           R"({"id": 7, "of": [1.10, {"deep": -0.0E1}], "text": "1.10"})"}) {
    CAPTURE(text);
    CHECK(of(text) == fingerprint(parse_json<nlohmann::ordered_json>(text)));
  }
  CHECK(of(R"({"weight": 0.5})") != of(R"({"weight": 0.51})"));
  CHECK(of(R"({"text": "1.10"})") != of(R"({"text": "1.1"})"));
  CHECK(fingerprint(nullptr) != of("{}"));
}

TEST_CASE("a set of which nothing is left is an error") {
  CHECK_THROWS_WITH_AS(too_long_notice(counted(2, 2), "pairs", 9),
                       doctest::Contains("not one of the 2 pairs fits into 9 tokens, and what is cut short counts"),
                       Error);
  CHECK_THROWS_WITH_AS(too_long_notice(counted(2, 2), "validation prompts", 9, true),
                       doctest::Contains("not one of the 2 validation prompts fits into 9 tokens"), Error);
  CHECK_THROWS_WITH_AS(untrained_notice(counted(3, 1, 2), "conversations"),
                       doctest::Contains("not one of the 3 conversations has a token to train on"), Error);
}
