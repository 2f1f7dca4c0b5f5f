// Rows are read when they are drawn: in one order whatever contains them, and with the errors of that moment.
#include <filesystem>

#include "core/rollout/model_text.hpp"
#include "core/rollout/prompts.hpp"
#include "tests/support/report.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using namespace hexad::rollout;
using plugin_test::contains;
using plugin_test::error_of;

namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<std::vector<int64_t>>;

struct Fixture {
  explicit Fixture(const fs::path& file) {
    config::DatasetConfig dataset;
    dataset.dataset_name = "ResponseDataset";
    dataset.data_path = file;
    dataset.processor = "math_hf_data_processor";
    dataset.env_name = "exact_answer";
    run.data.train = {dataset};
    run.data.max_input_seq_length = run.policy.max_total_sequence_length = 12;
    run.grpo.num_prompts_per_step = 16;
    run.grpo.max_num_epochs = 3;
  }
  Prompts prompts() { return Prompts(run, text.tools()); }

  config::RunConfig run;
  ModelText text = load_model_text(toy::source_dir() / "configs/quickstart_model", {});
};

// Token ids and answers of the steps to come.
Tokens drawn(Prompts& prompts, int64_t steps = 1'000) {
  Tokens tokens;
  for (int64_t step = 0; step < steps; ++step) {
    const std::vector<data::SharedDatum> batch = prompts.next();
    if (batch.empty()) break;
    for (const data::SharedDatum& prompt : batch) {
      tokens.push_back(prompt->token_ids);
      tokens.back().insert(tokens.back().end(), prompt->answer.begin(), prompt->answer.end());
    }
  }
  return tokens;
}

fs::path many(const std::string& name) { return fs::absolute(toy::source_dir()) / "tests/lib/table/data/many" / name; }

// So many rows more than are looked at before a run begins.
constexpr int64_t kUnseen = 404, kRows = data::kLookedAt + kUnseen;

// A row a line, of one letter, but for the lines (from 1 on) that are others.
fs::path write_rows(const toy::TempDir& dir, const std::map<int64_t, std::string>& others) {
  std::string text;
  for (int64_t line = 1; line <= kRows; ++line) {
    const auto other = others.find(line);
    text += other == others.end() ? R"({"question": "a", "answer": "b"})" : other->second;
    text += '\n';
  }
  return dir.write("rows.jsonl", text);
}

}  // namespace

TEST_CASE("order and token ids are those of JSONL in every container, over epochs and after a resume") {
  Fixture jsonl(many("rows.jsonl"));
  SUBCASE("shuffled") {}
  SUBCASE("in the order of the file, parted and repeated") {
    jsonl.run.data.shuffle = false;
    jsonl.run.data.train[0].split_validation_size = 0.1;
    jsonl.run.data.train[0].repeat = 2;
  }
  SUBCASE("some of two sets") {
    jsonl.run.data.train.push_back(jsonl.run.data.train[0]);
    jsonl.run.data.train[0].max_samples = 70;
  }
  Prompts lines = jsonl.prompts();
  const Tokens wanted = drawn(lines);
  const int64_t per_epoch = jsonl.prompts().steps_per_epoch();
  REQUIRE(std::ssize(wanted) == 3 * per_epoch * 16);
  const bool has_arrow =
      fs::exists(fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/libhexad_arrow.so");
  if (!has_arrow) test_report::skipped("built without Apache Arrow (tools/setup.sh)");
  for (const fs::directory_entry& entry : fs::directory_iterator(many(""))) {
    const std::string name = entry.path().filename();
    if (!has_arrow && name != "rows.json") continue;
    CAPTURE(name);
    Fixture other(entry.path());
    other.run = jsonl.run;
    for (config::DatasetConfig& set : other.run.data.train) set.data_path = entry.path();
    Prompts whole = other.prompts();
    CHECK(whole.train().fingerprint == lines.train().fingerprint);
    CHECK(drawn(whole) == wanted);
    for (const int64_t cut : {int64_t{0}, int64_t{1}, per_epoch, per_epoch + 3}) {
      CAPTURE(cut);
      Prompts before = other.prompts(), after = other.prompts();
      Tokens got = drawn(before, cut);
      after.restore(before.state());
      const Tokens rest = drawn(after);
      got.insert(got.end(), rest.begin(), rest.end());
      CHECK(got == wanted);
    }
  }
}

TEST_CASE("a row that nobody has looked at is refused by name when it is drawn") {
  const toy::TempDir dir;
  for (const auto& [row, said] :
       std::map<std::string, std::string>{{R"({"question": 3})", "no field 'answer'"},
                                          {R"({"question": "a", "answer")", "malformed JSON"},
                                          {R"(["a"])", "want a JSON object, got array"},
                                          {R"({"question": ["a"], "answer": "b"})", "field 'question'"}}) {
    CAPTURE(row);
    Fixture fixture(write_rows(dir, {{data::kLookedAt + 20, row}}));
    fixture.run.data.shuffle = false;
    Prompts prompts = fixture.prompts();
    CHECK(drawn(prompts, data::kLookedAt / 16 + 1).size() == data::kLookedAt + 16);
    const std::string refused = error_of([&] { prompts.next(); });
    CHECK(contains(refused, fmt::format("rows.jsonl:{}", data::kLookedAt + 20)));
    CHECK(contains(refused, said));
    write_rows(dir, {{data::kLookedAt, row}});  // the last that is looked at
    CHECK(contains(error_of([&] { fixture.prompts(); }), fmt::format("rows.jsonl:{}", data::kLookedAt)));
  }
}

TEST_CASE("a row that is too long is noticed when it is drawn, told of once, and counted; no other moves for it") {
  const toy::TempDir dir;
  const std::string long_row = R"({"question": "abcdefghabcdefgh", "answer": "b"})";
  const int64_t first = data::kLookedAt + 5, second = data::kLookedAt + 40;
  Fixture fixture(write_rows(dir, {{first, long_row}, {second, long_row}}));
  fixture.run.data.shuffle = false;
  Prompts prompts = fixture.prompts();
  CHECK(prompts.train().size == kRows);
  CHECK(prompts.train().looked_at == data::kLookedAt);
  CHECK(data::too_long_notice(prompts.train(), "prompts", 11) == "");
  drawn(prompts, data::kLookedAt / 16);
  CHECK(prompts.too_long().take_count() == 0);
  CHECK(prompts.too_long().take_note() == "");
  const std::vector<data::SharedDatum> batch = prompts.next();
  REQUIRE(batch.size() == 16);
  for (int64_t i = 0; i < 16; ++i) {
    CHECK(batch[static_cast<size_t>(i)]->loss_multiplier == (i == 4 ? 0 : 1));
    CHECK(batch[static_cast<size_t>(i)]->index == data::kLookedAt + i);
  }
  CHECK(prompts.too_long().take_count() == 1);
  CHECK(prompts.too_long().take_note() ==
        fmt::format("{}:{} does not fit into 11 tokens (data.max_input_seq_length): cut short, it counts nowhere. The "
                    "metric num_too_long counts such rows as they are drawn",
                    (dir / "rows.jsonl").string(), first));
  drawn(prompts, 3);
  CHECK(prompts.too_long().take_count() == 1);
  CHECK(prompts.too_long().take_note() == "");
}

TEST_CASE("notices of the start say of how many rows they speak") {
  const toy::TempDir dir;
  Fixture fixture(write_rows(dir, {{7, R"({"question": "abcdefghabcdefgh", "answer": ""})"}}));
  const Prompts prompts = fixture.prompts();
  CHECK(data::too_long_notice(prompts.train(), "prompts", 11) ==
        fmt::format("1 of {} prompts (the first of {}) do not fit into 11 tokens (data.max_input_seq_length): cut "
                    "short, they count nowhere",
                    data::kLookedAt, kRows));
  CHECK(prompts.answers().at("exact_answer").rows == data::kLookedAt);
  CHECK(prompts.answers().at("exact_answer").missing == 1);
  fixture.run.data.train[0].max_samples = 20;  // all are looked at: nothing is left to tell of later
  fixture.run.data.shuffle = false;
  Prompts few = fixture.prompts();
  CHECK(few.train().looked_at == 20);
  few.next();
  CHECK(few.too_long().take_count() == 1);
  CHECK(few.too_long().take_note() == "");
}
