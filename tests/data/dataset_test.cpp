#include "core/data/dataset/dataset.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "lib/base/error.hpp"

using namespace hexad;
using namespace hexad::data;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

// A folder that goes away with the test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fmt::format("hexad-dataset-{}", static_cast<const void*>(this))) {
    fs::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

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

TEST_CASE("errors in data files name the file and the line") {
  const Folder folder;
  const auto load = [&](const std::string& text) { load_dataset(response(folder.write("bad.jsonl", text))); };
  CHECK_THROWS_WITH_AS(load("{\"input\": \"a\", \"output\": \"b\"}\n{\"input\": \n"),
                       doctest::Contains("bad.jsonl:2: malformed JSON"), Error);
  CHECK_THROWS_WITH_AS(load("{\"input\": \"a\", \"output\": \"b\"}\n\n{}"),
                       doctest::Contains("bad.jsonl:2: empty line"), Error);
  CHECK_THROWS_WITH_AS(load("{\"input\": \"a\"}"), doctest::Contains("bad.jsonl:1: no field 'output'; it has: input"),
                       Error);
  CHECK_THROWS_WITH_AS(load("{\"input\": [1], \"output\": 1}"),
                       doctest::Contains("bad.jsonl:1: field 'input' is array, want text"), Error);
  CHECK_THROWS_WITH_AS(load("3"), doctest::Contains("bad.jsonl:1: want a JSON object, got number"), Error);
  CHECK_THROWS_WITH_AS(load(""), doctest::Contains("holds no rows"), Error);
  CHECK_THROWS_WITH_AS(load_dataset(response("/nowhere.jsonl")), doctest::Contains("no such file or folder"), Error);
}

TEST_CASE("a local folder is read by split, and other formats say how to convert") {
  const Folder folder;
  folder.write("train-00001.jsonl", numbered_rows(2));
  folder.write("train-00000.jsonl", numbered_rows(1));
  folder.write("data/test-0.json", "[" + std::string(R"({"input": "t", "output": "u"})") + "]");
  config::DatasetConfig config = response(folder.path());
  CHECK(load_dataset(config).train.records.size() == 3);
  config.split = "test";
  CHECK(load_dataset(config).train.records[0].answer == "u");
  config.split = "dev";
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("no file for split 'dev'"), Error);

  const Folder parquet;
  parquet.write("data/train-0.parquet", "PAR1");
  CHECK_THROWS_WITH_AS(load_dataset(response(parquet.path())), doctest::Contains("pandas.read_parquet("), Error);

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

TEST_CASE("conversations keep their messages, tools and system prompt") {
  const Folder folder;
  config::DatasetConfig config;
  config.dataset_name = "openai_format";
  config.data_path = folder.write(
      "chat.jsonl", R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],)"
                    R"( "tools": [{"name": "f"}], "persona": "Be kind."})");
  config.spec = Json{{"system_key", "persona"}};
  const Record record = load_dataset(config).train.records[0];
  CHECK(record.messages[0] == Json{{"role", "system"}, {"content", "Be kind."}});
  CHECK(record.messages.size() == 3);
  CHECK(record.answer == "hello");
  CHECK(record.tools == Json::parse(R"([{"name": "f"}])"));

  config.data_path = folder.write("bad.jsonl", R"({"messages": [{"content": "hi"}]})");
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("bad.jsonl:1: messages[0]: want an object with a role"),
                       Error);
  config.data_path = folder.write("none.jsonl", R"({"chat": []})");
  CHECK_THROWS_WITH_AS(load_dataset(config), doctest::Contains("no field 'messages'; it has: chat"), Error);
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
