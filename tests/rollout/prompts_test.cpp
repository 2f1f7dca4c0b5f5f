// The prompts of a run: their order, their ends, and those that are too long.
#include "core/rollout/prompts.hpp"

#include "core/rollout/model_text.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using namespace hexad::rollout;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

// Questions of 1, 2, ... letters; rendered they have two tokens more.
struct Fixture {
  explicit Fixture(int count) {
    std::string lines;
    for (int i = 1; i <= count; ++i)
      lines += fmt::format("{{\"input\": \"{}\", \"output\": \"a\"}}\n", std::string(i, 'a'));
    config::DatasetConfig dataset;
    dataset.dataset_name = "ResponseDataset";
    dataset.data_path = dir.write("train.jsonl", lines).string();
    dataset.processor = "math_hf_data_processor";
    dataset.env_name = "exact_answer";
    run.data.train = {dataset};
    run.data.shuffle = false;
    run.data.max_input_seq_length = 100;
    run.policy.max_total_sequence_length = 100;
    run.grpo.num_prompts_per_step = 2;
    run.grpo.max_num_epochs = 2;
  }
  Prompts prompts() { return Prompts(run, text.tools()); }

  toy::TempDir dir;
  config::RunConfig run;
  ModelText text = load_model_text(toy::source_dir() / "configs/quickstart_model", {});
};

}  // namespace

TEST_CASE("prompts come in batches until the epochs are over") {
  Fixture fixture(5);
  Prompts prompts = fixture.prompts();
  CHECK(prompts.train().size == 5);
  CHECK(prompts.steps_per_epoch() == 2);
  int64_t steps = 0;
  while (!prompts.next().empty()) ++steps;
  CHECK(steps == 4);
  CHECK(prompts.next().empty());
}

TEST_CASE("prompts go on where they were left") {
  Fixture fixture(8);
  fixture.run.data.shuffle = true;
  Prompts whole = fixture.prompts(), first = fixture.prompts();
  const auto texts = [](const std::vector<data::SharedDatum>& prompts) {
    std::vector<std::string> texts;
    for (const data::SharedDatum& prompt : prompts) texts.push_back(prompt->text);
    return texts;
  };
  for (int i = 0; i < 3; ++i) CHECK(texts(whole.next()) == texts(first.next()));
  Prompts resumed = fixture.prompts();
  resumed.restore(first.state());
  for (int i = 0; i < 5; ++i) CHECK(texts(whole.next()) == texts(resumed.next()));
}

TEST_CASE("a prompt that is too long is cut and leaves the loss, whichever bound it breaks") {
  Fixture fixture(10);
  SUBCASE("data.max_input_seq_length") { fixture.run.data.max_input_seq_length = 8; }
  SUBCASE("policy.max_total_sequence_length") { fixture.run.policy.max_total_sequence_length = 8; }
  Prompts prompts = fixture.prompts();
  for (int i = 0; i < 5; ++i) {
    for (const data::SharedDatum& prompt : prompts.next()) {
      const bool too_long = prompt->text.size() >= std::string("<question><answer>aaaaaa").size();
      CHECK(prompt->loss_multiplier == (too_long ? 0 : 1));
      CHECK(prompt->token_ids.size() ==
            (too_long ? 4 : prompt->text.size() - std::string("<question><answer>").size() + 2));
    }
  }
}

TEST_CASE("rows without an answer are counted, and told of where the reward compares with it") {
  Fixture fixture(1);
  config::DatasetConfig& chats = fixture.run.data.train[0];
  chats.dataset_name = "openai_format";
  const std::string question = R"({"messages": [{"role": "user", "content": "a"}]})",
                    answered =
                        R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";
  fixture.dir.write("train.jsonl", question + "\n" + answered + "\n" + question + "\n");
  const auto lines = [&](const nlohmann::ordered_json& section) {
    static plugin::Registry plugins({}, nullptr);
    Environments environments;
    environments["exact_answer"] = environment::make("exact_answer", section, {plugins});
    return missing_answers(fixture.prompts().answers(), environments);
  };
  CHECK(lines(nlohmann::ordered_json::object()) ==
        std::vector<std::string>{"env.exact_answer: 2 of 3 rows have no answer: a reward that compares with it is 0 "
                                 "there (output_key names the column)"});
  CHECK(lines({{"type", "format"}, {"tags", {"a"}}}).empty());
  fixture.dir.write("train.jsonl", answered + "\n" + answered + "\n");
  CHECK(lines(nlohmann::ordered_json::object()).empty());
  chats.dataset_name = "puzzle";  // whose rows are made
  chats.spec = {{"dataset_name", "puzzle"}, {"kind", "successor"}, {"size", 4}};
  CHECK(fixture.prompts().answers().empty());
}

TEST_CASE("validation takes what is split off and data.validation, and tells of rows that it leaves out") {
  Fixture fixture(10);
  config::DatasetConfig validation = fixture.run.data.train[0];
  fixture.run.data.train[0].split_validation_size = 3;
  CHECK(fixture.prompts().validation().prompts.size() == 3);
  fixture.run.data.validation = {validation};
  const Prompts both = fixture.prompts();
  CHECK(both.validation().prompts.size() == 13);
  CHECK(both.notes().empty());
  fixture.run.data.validation[0].split_validation_size = 4;
  const Prompts part = fixture.prompts();
  CHECK(part.validation().prompts.size() == 7);
  REQUIRE(part.notes().size() == 1);
  CHECK(contains(part.notes()[0], "train.jsonl: of 10 rows 4 are validated on, the others are left out"));
}

TEST_CASE("data that cannot be used is an error that names it") {
  Fixture fixture(4);
  fixture.dir.write("train.jsonl", "{\"input\": \"a\", \"output\": \"b\"}\n{\n");
  CHECK(contains(error_of([&] { fixture.prompts(); }), "train.jsonl:2: malformed JSON"));
  fixture.run.data.train[0].output_key = "output";
  fixture.dir.write("train.jsonl", "{\"input\": \"a\"}\n");
  CHECK(contains(error_of([&] { fixture.prompts(); }), "train.jsonl:1: no field 'output'"));
  fixture.dir.write("train.jsonl", "{\"input\": \"a\", \"output\": \"b\"}\n");
  CHECK(
      error_of([&] { fixture.prompts(); }) ==
      "data loader: the dataset has 1 records, fewer than the 2 prompts of a step; lower grpo.num_prompts_per_step or "
      "raise the dataset's repeat");
  fixture.run.data.train.clear();
  CHECK(error_of([&] { fixture.prompts(); }) == "data.train has no prompts");
}
