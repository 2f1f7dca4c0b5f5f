#include "lib/table/folder.hpp"

#include "tests/lib/table/support.hpp"

using namespace hexad;
using namespace table_test;

namespace {

std::vector<std::string> names(const toy::TempDir& dir, const std::string& split) {
  std::vector<std::string> result;
  for (const fs::path& file : table::files_of_split(dir.path(), split))
    result.push_back(file.lexically_relative(dir.path()));
  return result;
}

std::string refused(const toy::TempDir& dir, const std::string& split) {
  return refusal([&] { names(dir, split); });
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("files of a split are found where the Hub has them, in order of name") {
  const toy::TempDir dir;
  for (const char* name : {"README.md", "dataset_info.json", "data/train-00001-of-00002.parquet",
                           "data/train-00000-of-00002.parquet", "data/test-00000-of-00001.parquet", "dev/a.csv.gz"})
    dir.write(name, "");
  CHECK(names(dir, "train") == Names{"data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"});
  CHECK(names(dir, "test") == Names{"data/test-00000-of-00001.parquet"});
  CHECK(names(dir, "dev") == Names{"dev/a.csv.gz"});
  SAYS(refused(dir, "validation"),
       "no file for split 'validation'; want validation.jsonl, data/validation-*.parquet or "
       "validation/*.csv (.jsonl, .json, .csv, .tsv (each also .gz or .zst), .parquet or "
       ".arrow); it holds README.md, data/, ");
}

TEST_CASE("files that are named after no split are train, and of one kind") {
  const toy::TempDir dir;
  dir.write("b.jsonl", "");
  dir.write("a.jsonl", "");
  dir.write("config.json", "");
  dir.write("images/a.png", "");
  CHECK(names(dir, "train") == Names{"a.jsonl", "b.jsonl"});
  dir.write("a.jsonl.zst", "");
  SAYS(refused(dir, "train"), "files of several kinds, perhaps of the same rows: a.jsonl, a.jsonl.zst. Name the file");
  dir.write("train.csv", "");
  CHECK(names(dir, "train") == Names{"train.csv"});
}

TEST_CASE("where other splits are, no file of another name is taken for train") {
  const toy::TempDir dir;
  dir.write("test.jsonl", "");
  SAYS(refused(dir, "train"), "; it holds test.jsonl; splits that it has (split): test");
  dir.write("dev/rows.jsonl", "");
  dir.write("my_val-1.jsonl", "");
  dir.write("latest.jsonl", "");
  SAYS(refused(dir, "train"), "; splits that it has (split): dev, my_val, test");
  for (const char* split : {"dev", "my_val", "test"}) CHECK(names(dir, split).size() == 1);
  dir.write("my_train.jsonl", "");
  SAYS(refused(dir, "train"), "; splits that it has (split): dev, my_train, my_val, test");
  const toy::TempDir one;
  one.write("my_train.jsonl", "");
  CHECK(names(one, "train") == Names{"my_train.jsonl"});
  const toy::TempDir hub;
  for (const char* name : {"train_sft", "train_gen", "test_sft"}) hub.write(fmt::format("data/{}-0.parquet", name), "");
  SAYS(refused(hub, "train"), "; splits that it has (split): test_sft, train_gen, train_sft");
  CHECK(names(hub, "train_sft") == Names{"data/train_sft-0.parquet"});
}

TEST_CASE("subsets of a folder are named where it has no files of its own") {
  const toy::TempDir dir;
  for (const char* name : {"main/train-0.parquet", "main/test-0.parquet", "socratic/train-0.parquet", "docs/a.md"})
    dir.write(name, "");
  SAYS(refused(dir, "train"), "; folders in it that have such files (subset): main, socratic");
  SAYS(refused(dir, "test"), "; folders in it that have such files (subset): main");
}

TEST_CASE("JSON and JSONL of one name are not one set") {
  const toy::TempDir dir;
  dir.write("train.json", "");
  dir.write("train.jsonl", "");
  SAYS(refused(dir, "train"), "files of several kinds, perhaps of the same rows: train.json, train.jsonl. Name the");
}

TEST_CASE("what save_to_disk has written is read by its own lists") {
  const toy::TempDir dir;
  dir.write("dataset_dict.json", R"({"splits": ["train", "test"]})");
  dir.write("train/state.json", R"({"_data_files": [{"filename": "data-00001.arrow"}, {"filename": "a.arrow"}]})");
  dir.write("train/unlisted.arrow", "");
  CHECK(names(dir, "train") == Names{"train/data-00001.arrow", "train/a.arrow"});
  SAYS(refused(dir, "dev"), "dataset_dict.json: no split 'dev'; it has: train, test");
  SAYS(refused(dir, "test"), "state.json: cannot be opened");
  for (const char* name : {"\"../a.arrow\"", "\"/etc/a.arrow\"", "\"\"", "3"}) {
    dir.write("train/state.json", fmt::format(R"({{"_data_files": [{{"filename": {}}}]}})", name));
    SAYS(refused(dir, "train"), "state.json: _data_files: want the name of a file in this folder, got {");
  }
  for (const char* state : {"[]", "{}", "{\"_data_files\": []}", "{\"_data_files\": 3}"}) {
    dir.write("train/state.json", state);
    SAYS(refused(dir, "train"), "state.json: it names no files of rows (_data_files)");
  }
  dir.write("train/state.json", R"({"_data_files": [{"filename": "a.arrow"}], "_indices_data_files": [{}]})");
  SAYS(refused(dir, "train"), "state.json: rows chosen by indices are not read; save it again");
}
