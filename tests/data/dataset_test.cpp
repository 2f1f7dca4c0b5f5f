#include "core/data/dataset/dataset.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "lib/base/error.hpp"
#include "tests/data/folder.hpp"
#include "tests/support/hub_cache.hpp"

using namespace hexad;
using namespace hexad::data;
using data_test::Folder;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

config::DatasetConfig response(const std::string& data_path) {
  config::DatasetConfig config;
  config.dataset_name = "ResponseDataset";
  config.data_path = data_path;
  return config;
}

std::string numbered_rows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{{\"input\": \"q{}\", \"output\": {}}}\n", i, i);
  return text;
}

}  // namespace

TEST_CASE("rows of JSONL become a question and an answer") {
  const Folder folder;
  config::DatasetConfig config =
      response(folder.write("math/train.jsonl", R"({"q": "1+1?", "a": 2, "level": "easy"})"));
  config.input_key = "q";
  config.output_key = "a";
  const DatasetSplit split = load_dataset(config);
  REQUIRE(split.train.records.size() == 1);
  CHECK(split.train.task_name == "math-train");
  CHECK_FALSE(split.validation);
  const Record& record = split.train.records[0];
  CHECK(record.messages ==
        Json::parse(R"([{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}])"));
  CHECK(record.answer == "2");
  CHECK(record.metadata == Json{{"level", "easy"}});
}

TEST_CASE("a path that cannot be looked at is told with the system's reason") {
  const Folder folder;
  const std::string circle = folder.write("other.jsonl", "") + ".link";
  fs::create_symlink(circle, circle);
  CHECK_THROWS_WITH_AS(load_dataset(response(circle)),
                       doctest::Contains(".link: cannot be opened: Too many levels of symbolic links"), Error);
}

TEST_CASE("a name of several parts leads to the same field in rows of every reader") {
  const Folder folder;
  config::DatasetConfig config = response(folder.write("rows.jsonl", R"({"prompt": "q", "a": {"b.c": "1"}})"));
  for (const bool told_by_columns : {true, false}) {
    config.output_key = "a.b.c";
    if (!told_by_columns) config.input_key = "prompt";
    CHECK(load_dataset(config).train.records[0].answer == "1");
  }
}

TEST_CASE("errors in data files name the file and the line") {
  const Folder folder;
  const auto load = [&](const std::string& text) { load_dataset(response(folder.write("bad.jsonl", text))); };
  CHECK_THROWS_WITH_AS(load("{\"input\": \"a\", \"output\": \"b\"}\n{\"input\": \n"),
                       doctest::Contains("bad.jsonl:2: malformed JSON"), Error);
  CHECK_THROWS_WITH_AS(load("{\"input\": \"a\", \"output\": \"b\"}\n\n{}"),
                       doctest::Contains("bad.jsonl:3: no field 'input'; it has: "), Error);
  CHECK_THROWS_WITH_AS(load("{\"input\": \"a\", \"output\": 1}\n{\"input\": \"b\"}"),
                       doctest::Contains("bad.jsonl:2: no field 'output'; it has: input"), Error);
  CHECK_THROWS_WITH_AS(load("{\"input\": \"a\", \"input\": \"b\"}"),
                       doctest::Contains("bad.jsonl:1: key 'input' stands twice in one object"), Error);
  CHECK_THROWS_WITH_AS(load("{\"input\": [1], \"output\": 1}"),
                       doctest::Contains("bad.jsonl:1: field 'input' is array, want text"), Error);
  CHECK_THROWS_WITH_AS(load("3"), doctest::Contains("bad.jsonl:1: want a JSON object, got number"), Error);
  CHECK_THROWS_WITH_AS(load(""), doctest::Contains("holds no rows"), Error);
  CHECK_THROWS_WITH_AS(load_dataset(response("/nowhere.jsonl")), doctest::Contains("no such file or folder"), Error);
}

TEST_CASE("a byte order mark, blank lines and line ends of Windows are no rows") {
  const Folder folder;
  const std::string mark = "\xEF\xBB\xBF", rows = "{\"input\": \"a\", \"output\": \"b\"}";
  const auto answers = [&](const std::string& name, const std::string& text) {
    std::string all;
    const Dataset train = load_dataset(response(folder.write(name, text))).train;
    for (const Record& record : train.records) all += record.answer;
    return all;
  };
  CHECK(answers("a.jsonl", mark + rows + "\r\n" + rows + "\r\n") == "bb");
  CHECK(answers("a.jsonl", "\n \t\r\n" + rows + "\n\n\f\n" + rows + "\n\n") == "bb");
  for (const std::string& before : {std::string(), mark, mark + "\n ", std::string("\n")})
    CHECK(answers("a.json", before + "[" + rows + ",\r\n" + rows + "]\n") == "bb");
  CHECK(answers("a.json", mark + rows + "\n" + rows) == "bb");
}

TEST_CASE("an object over several lines, and a list within an object, are no rows and say so") {
  const Folder folder;
  const auto load = [&](const std::string& text) { load_dataset(response(folder.write("bad.json", text))); };
  CHECK_THROWS_WITH_AS(load("{\n \"input\": \"a\",\n \"output\": \"b\"\n}\n"),
                       doctest::Contains("bad.json: one JSON object over several lines; want rows: an object a line"),
                       Error);
  CHECK_THROWS_WITH_AS(load("{\n \"version\": 1,\n \"data\": [{\"input\": \"a\", \"output\": \"b\"}]\n}"),
                       doctest::Contains("If its list 'data' holds the rows: jq -c '.\"data\"[]' "), Error);
  CHECK_THROWS_WITH_AS(load("{\"version\": 1, \"data\": [{\"input\": \"a\"}]}"),
                       doctest::Contains("bad.json:1: no field 'input'; it has: version, data. If its list 'data'"),
                       Error);
  CHECK_THROWS_WITH_AS(load("{\n \"input\": \n"), doctest::Contains("bad.json:1: malformed JSON: column 2"), Error);
  CHECK_THROWS_WITH_AS(load("[{\"input\": \"a\"}, 3]"), doctest::Contains("bad.json[1]: want a JSON object, got"),
                       Error);
  CHECK_THROWS_WITH_AS(load(std::string("\xFF\xFE[\0", 4)), doctest::Contains("bad.json: UTF-16, want UTF-8"), Error);
}

TEST_CASE("numbers are the text that the file has, and a name with dots is a path") {
  const Folder folder;
  config::DatasetConfig config = response(
      folder.write("rows.jsonl", R"({"q": 1e3, "model": {"truth": 0.10}, "id": 123456789012345678901, "a.b": true})"));
  config.input_key = "q";
  const auto answer = [&](const char* key) {
    config.output_key = key;
    return load_dataset(config).train.records[0].answer;
  };
  CHECK(answer("model.truth") == "0.10");
  CHECK(answer("id") == "123456789012345678901");
  CHECK(answer("a.b") == "true");
  CHECK(load_dataset(config).train.records[0].messages[0].at("content") == "1e3");
  CHECK_THROWS_WITH_AS(answer("model.lies"),
                       doctest::Contains("rows.jsonl:1: no field 'model.lies'; it has: q, model, id, a.b"), Error);
}

TEST_CASE("a named answer is there in every row, others may have none") {
  const Folder folder;
  const std::string two = "{\"input\": \"a\", \"output\": \"x\"}\n{\"input\": \"b\", \"output\": \" \"}\n";
  config::DatasetConfig config = response(folder.write("rows.jsonl", two));
  CHECK(load_dataset(config).train.records[1].answer == " ");
  config.output_key = "output";
  CHECK_THROWS_WITH_AS(load_dataset(config),
                       doctest::Contains("rows.jsonl:2: field 'output' is empty, and output_key names it"), Error);
  config.output_key = "label";
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("rows.jsonl:1: no field 'label'; it has: input, output"),
                       Error);

  config = response(folder.write("bare.jsonl", "{\"input\": \"a\"}\n{\"input\": \"b\"}\n"));
  const Record bare = load_dataset(config).train.records[1];
  CHECK(bare.answer.empty());
  CHECK(bare.messages == Json::parse(R"([{"role": "user", "content": "b"}])"));
}

TEST_CASE("a local folder is read by split") {
  const Folder folder;
  folder.write("train-00001.jsonl", numbered_rows(2));
  folder.write("train-00000.jsonl", numbered_rows(1));
  folder.write("data/test-0.json", "[" + std::string(R"({"input": "t", "output": "u"})") + "]");
  config::DatasetConfig config = response(folder.path());
  CHECK(load_dataset(config).train.records.size() == 3);
  config.split = "test";
  CHECK(load_dataset(config).train.records[0].answer == "u");
  config.split = "dev";
  CHECK_THROWS_WITH_AS(load_dataset(config),
                       doctest::Contains("no file for split 'dev'; want dev.jsonl, data/dev-*.parquet or "
                                         "dev/*.csv (.jsonl, .json, "),
                       Error);

  fs::create_symlink("cache/that/was/removed", fs::path(folder.path()) / "train-00002.jsonl");
  config.split = "train";
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("train-00002.jsonl: cannot be opened: No such file"),
                       Error);

  const Folder parquet;
  parquet.write("data/train-0.parquet", "PAR1");
  CHECK_THROWS_WITH_AS(load_dataset(response(parquet.path())), doctest::Contains("data/train-0.parquet: "), Error);

  config.dataset_name = "OpenMathInstruct-2";
  config.data_path.reset();
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("Nothing is downloaded"), Error);
  config.dataset_name = std::string(300, 'x');
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("nor a local folder"), Error);
  config.dataset_name = "ResponseDataset";
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("wants data_path"), Error);
  config.dataset_name = "ResponseDatset";
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("nor a local folder, did you mean 'ResponseDataset'?"),
                       Error);
}

TEST_CASE("a data set of the Hub is its snapshot in the cache") {
  test_support::HubCache cache;
  const std::string name = "datasets--owner--rows";
  cache.files(name, {{"README.md", "x"}, {"main/train.jsonl", numbered_rows(2)}});
  config::DatasetConfig config = response("owner/rows");
  config.subset = "main";
  const DatasetSplit split = load_dataset(config);
  CHECK(split.train.records.size() == 2);
  CHECK(split.train.task_name == "owner-rows");
  CHECK(split.train.records[1].source == (cache.snapshot(name) / "main/train.jsonl:2").string());
  config.subset.reset();
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("it holds README.md, main/"), Error);
  config.data_path.reset();
  config.dataset_name = "owner/rows@v1";
  CHECK_THROWS_WITH_AS(load_dataset(config),
                       doctest::Contains("dataset_name: the revision 'v1' of owner/rows is not in the Hub's cache; "),
                       Error);

  // A folder of the name wins.
  const Folder folder;
  fs::create_directories(fs::path(folder.path()) / "owner/rows");
  folder.write("owner/rows/train.jsonl", numbered_rows(3));
  config.dataset_name = "owner/rows";
  CHECK(load_dataset(config, folder.path()).train.records.size() == 3);

  config.dataset_name = "owner/none";
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("sliding_puzzle) nor a local folder; the Hub's cache, "),
                       Error);
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("Fetch it: hf download owner/none --repo-type dataset"),
                       Error);
  CHECK_THROWS_WITH_AS(load_dataset(response("owner/none")),
                       doctest::Contains("owner/none: no such file or folder (data_path); the Hub's cache, "), Error);
  CHECK_THROWS_WITH_AS(load_dataset(response("none.jsonl")), "./none.jsonl: no such file or folder (data_path)", Error);
}

TEST_CASE("beside a data_path any name will do, but not a reader's that is misspelt") {
  const Folder folder;
  folder.write("rows.jsonl", numbered_rows(2));
  config::DatasetConfig config = response(folder.path() + "/rows.jsonl");
  for (const char* name : {"mine", "OpenMathInstruct-2", "DeepScaler", "MyOwnResponseDataset", ""}) {
    config.dataset_name = name;
    CHECK(load_dataset(config).train.records.size() == 2);
  }
  for (const auto& [name, meant] : {std::pair("openai_fromat", "openai_format"),
                                    {"OpenAI_Format", "openai_format"},
                                    {"ResponsDataset", "ResponseDataset"},
                                    {"PreferenceDataSets", "PreferenceDataset"},
                                    {"puzle", "puzzle"}}) {
    config.dataset_name = name;
    CHECK_THROWS_WITH_AS(load_dataset(config),
                         doctest::Contains(fmt::format("dataset_name: no built-in dataset is named '{}', did you mean "
                                                       "'{}'?",
                                                       name, meant)
                                               .c_str()),
                         Error);
  }
}

TEST_CASE("a subset is a folder of the dataset, and of its rows only the first may be wanted") {
  const Folder folder;
  folder.write("train.jsonl", numbered_rows(9));
  folder.write("hard/train.jsonl", numbered_rows(5));
  config::DatasetConfig config = response(folder.path());
  CHECK(load_dataset(config).train.records.size() == 9);
  config.subset = "hard";
  CHECK(load_dataset(config).train.records.size() == 5);
  config.max_samples = 6;
  CHECK(load_dataset(config).train.records.size() == 5);
  config.max_samples = 3;
  config.repeat = 2;
  const Dataset train = load_dataset(config).train;
  REQUIRE(train.records.size() == 6);
  CHECK(train.records[2].answer == "2");
  CHECK(train.records[3].answer == "0");
  config.subset = "easy";
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("no folder 'easy' in it (subset)"), Error);
  config.data_path = folder.path() + "/train.jsonl";
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("train.jsonl: no folder 'easy' in it"), Error);
}

TEST_CASE("validation is split off by seed, and training repeats") {
  const Folder folder;
  config::DatasetConfig config = response(folder.write("all.jsonl", numbered_rows(20)));
  config.split_validation_size = 0.25;
  config.repeat = 2;
  const DatasetSplit split = load_dataset(config);
  REQUIRE(split.validation);
  CHECK(split.validation->records.size() == 5);
  CHECK(split.train.records.size() == 30);
  std::set<std::string> held_out;
  for (const Record& record : split.validation->records) held_out.insert(record.answer);
  CHECK(held_out.size() == 5);
  for (const Record& record : split.train.records) CHECK_FALSE(held_out.contains(record.answer));
  CHECK(load_dataset(config).validation->records[0].answer == split.validation->records[0].answer);
  config.seed = 43;
  std::set<std::string> other;
  const DatasetSplit reseeded = load_dataset(config);
  for (const Record& record : reseeded.validation->records) other.insert(record.answer);
  CHECK(other != held_out);
  config.split_validation_size = 20;
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("split_validation_size: 20 of 20 records"), Error);
}
