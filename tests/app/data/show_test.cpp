// `hexad data show`: the rows of a data set as a model sees them.
#include "app/data/show.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "app/data/histogram.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "tests/support/toy/program.hpp"
#include "tests/support/toy/supervised.hpp"

using namespace hexad;
using plugin_test::contains;
using plugin_test::Json;
using toy::TempDir;

namespace {

// The quickstart's model, and one training set with these rows.
struct View {
  View(config::Algorithm algorithm, const char* processor, const std::string& rows) {
    run.algorithm = algorithm;
    run.policy.max_total_sequence_length = run.data.max_input_seq_length = 6;
    config::DatasetConfig set;
    set.dataset_name = "ResponseDataset";
    set.processor = processor;
    set.data_path = dir.write("rows.jsonl", rows).string();
    set.repeat = 3;
    run.data.train = {set};
    config::TokenizerConfig tokenizer;
    tokenizer.chat_template =
        "{% for m in messages %}{% if m.role == 'user' %}<question>{{ m.content }}<answer>{% else %}{{ m.content }}"
        "{% endif %}{% endfor %}";
    text = rollout::load_model_text(toy::source_dir() / "configs/quickstart_model", tokenizer);
  }
  std::string show(const dataset_view::ShowOptions& options) const {
    std::ostringstream out;
    dataset_view::show(run, text, options, out);
    return replaced(out.str(), (dir / "rows.jsonl").string(), "rows.jsonl");
  }
  std::vector<Json> json(int64_t rows = -1) const {
    std::istringstream lines(show({.rows = rows, .json = true}));
    std::vector<Json> result;
    for (std::string line; std::getline(lines, line);) result.push_back(Json::parse(line));
    return result;
  }

  TempDir dir;
  config::RunConfig run;
  rollout::ModelText text;
};

const char* const kAnswered =
    "{\"question\": \"ab\", \"answer\": \"c\"}\n{\"question\": \"abcdefgh\", \"answer\": \"a\"}\n"
    "{\"question\": \"a\", \"answer\": \"b\"}\n";

}  // namespace

TEST_CASE("rows of prompts are shown as text and tokens, none of which train, with what is expected") {
  const View view(config::Algorithm::grpo, "math_hf_data_processor", kAnswered);
  const std::vector<Json> rows = view.json();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].dump() == R"({"source":"rows.jsonl:1","text":"<question>ab<answer>","token_ids":[1,4,5,3],)"
                          R"("trains":[0,0,0,0],"expected":"c"})");
  CHECK(rows[1].dump() == R"({"source":"rows.jsonl:2","dropped":"10 tokens, and there may be fewer than 6 )"
                          "(data.max_input_seq_length)\"}");
  CHECK(view.json(1).size() == 1);
  CHECK(view.show({.rows = 2}) == R"(data: 3 rows, question + answer
rows.jsonl:1
4 tokens
<question>ab<answer>
expected: c

rows.jsonl:2
dropped: 10 tokens, and there may be fewer than 6 (data.max_input_seq_length)
10 tokens
<question>abcdefgh<answer>
expected: a

3 rows, by tokens:
   3  ########################################  1
   4  ########################################  1
   5                                            0
   6                                            0
   7                                            0
   8                                            0
   9                                            0
  10  ########################################  1
dropped: 1 row
  1, the first rows.jsonl:2: 10 tokens, and there may be fewer than 6 (data.max_input_seq_length)
)");
}

TEST_CASE("of conversations and pairs what trains is marked, and one without any is dropped") {
  const View view(config::Algorithm::sft, "sft_processor",
                  std::string(kAnswered) + "{\"question\": \"a\", \"answer\": \"\"}\n");
  const std::vector<Json> rows = view.json();
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].at("text") == "<question>ab<answer>c<end>");
  CHECK(rows[0].at("trains") == Json({0, 0, 0, 0, 1, 1}));
  CHECK(rows[1].at("dropped") == "12 tokens, and there may be at most 6 (data.max_input_seq_length)");
  CHECK(rows[3].at("dropped") == "the assistant says nothing: no token trains");
  CHECK(contains(view.show({.rows = 1}), "6 tokens, 2 train\n<question>ab<answer>{+c<end>+}\nexpected: c\n"));
  CHECK(contains(view.show({.rows = 1, .colours = true}), "<question>ab<answer>\033[32mc<end>\033[0m\n"));

  const View pairs(config::Algorithm::dpo, "preference_processor",
                   "{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"cd\"}\n");
  CHECK(pairs.json().at(0).dump() ==
        R"({"source":"rows.jsonl:1","text":"ab<end>","token_ids":[4,5,2],"trains":[0,1,1],)"
        R"("rejected":{"text":"acd<end>","token_ids":[4,6,7,2],"trains":[0,1,1,1]}})");
  CHECK(contains(pairs.show({}), "chosen: 3 tokens, 2 train\na{+b<end>+}\nrejected: 4 tokens, 3 train\n"));
}

TEST_CASE("what a terminal would obey is shown by number, and a row that train refuses ends the page") {
  const View view(config::Algorithm::grpo, "default",
                  "{\"question\": \"a\", \"answer\": \"\\u001b[2J\"}\n{\"question\": \"a\"}\n");
  CHECK_THROWS_WITH_AS(view.show({}), doctest::Contains("rows.jsonl:2: no field 'answer'"), Error);
  const View one(config::Algorithm::grpo, "default", "{\"question\": \"a\", \"answer\": \"\\u001b[2J\"}\n");
  CHECK(contains(one.show({}), "expected: \\x1b[2J\n"));
}

TEST_CASE("as JSON no more rows are read than are shown, and those of a page come before the others are read") {
  std::string text;
  for (int64_t i = 0; i < data::kLookedAt; ++i) text += "{\"question\": \"a\", \"answer\": \"b\"}\n";
  const View view(config::Algorithm::grpo, "default", text + "{\"question\": \"a\"}\n");
  CHECK(view.json(3).size() == 3);
  CHECK(view.json(0).empty());
  CHECK_THROWS_WITH_AS(view.json(), doctest::Contains("rows.jsonl:4097: no field 'answer'"), Error);
  const dataset_view::Scorer score = [](std::span<const data::SharedDatum> prompts) {
    return std::vector<dataset_view::Scored>(prompts.size(), {"b", 1.0f, "", {}});
  };
  const std::string scored = view.show({.rows = 70, .json = true, .score = score});
  CHECK(std::ranges::count(scored, '\n') == 70);
  std::ostringstream page;
  CHECK_THROWS_AS(dataset_view::show(view.run, view.text, {.rows = 70, .score = score}, page), Error);
  CHECK(contains(page.str(), "rows.jsonl:70\n3 tokens\n<question>a<answer>\nexpected: b\nreward: 1\n\n"));
}

TEST_CASE("lengths are counted in bins of round widths") {
  CHECK(dataset_view::histogram({}) == "");
  CHECK(dataset_view::histogram({7, 7}) == "  7  ########################################  2\n");
  std::vector<int64_t> lengths(400, 130);
  lengths.insert(lengths.end(), {0, 1199});
  const std::string wide = dataset_view::histogram(lengths);
  CHECK(std::ranges::count(wide, '\n') == 12);
  CHECK(contains(wide, "      0 -    99  #                                         1\n"));
  CHECK(contains(wide, "    100 -   199  ########################################  400\n"));
  CHECK(contains(wide, "  1,100 - 1,199  #                                         1\n"));
}

TEST_CASE("hexad data show") {
  const TempDir dir;
  const std::string config = dir.write("sft.yaml", toy::supervised_config_text("sft", dir)).string();
  const toy::Ended shown = toy::run({"data", "show", config, "--rows", "1"});
  CHECK_MESSAGE(shown.code == 0, shown.err);
  CHECK_MESSAGE(contains(shown.out, "48 rows, by tokens:\n"), shown.out);
  CHECK_MESSAGE(contains(shown.out, "data.jsonl:1\n"), shown.out);
  const toy::Ended json = toy::run({"data", "show", config, "--json"});
  CHECK(std::ranges::count(json.out, '\n') == 48);
  CHECK(Json::parse(json.out.substr(0, json.out.find('\n'))).contains("token_ids"));
  CHECK(contains(toy::run({"data", "show", config, "--validation"}).out, "48 rows of validation, by tokens:\n"));
  const toy::Ended missing = toy::run({"data", "show", config, "policy.model_name=/nowhere"});
  CHECK(missing.code == 2);
  CHECK(contains(missing.err, "/nowhere"));
  CHECK(toy::run({"data"}).code == 2);
}
