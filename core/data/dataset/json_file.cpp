#include "core/data/dataset/json_file.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/input_file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::data {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

bool is_json(const fs::path& file) { return file.extension() == ".jsonl" || file.extension() == ".json"; }

bool is_binary(const fs::path& file) {
  const std::string extension = file.extension();
  return extension == ".parquet" || extension == ".arrow" || extension == ".csv";
}

[[noreturn]] void refuse_format(const fs::path& file) {
  const std::string extension = file.extension();
  if (!is_binary(file)) fail(ErrorKind::data, "{}: not a data file; want .jsonl or .json", file.string());
  const std::string load =
      extension == ".arrow" ? fmt::format("datasets.Dataset.from_file('{}').to_json('train.jsonl')", file.string())
                            : fmt::format("pandas.read_{}('{}').to_json('train.jsonl', orient='records', lines=True)",
                                          extension.substr(1), file.string());
  fail(ErrorKind::data, "{}: {} files are not read; convert once with Python: {}", file.string(), extension.substr(1),
       load);
}

// The message of nlohmann without its identifier and position, which is within the line.
std::string reason(const Json::parse_error& error) {
  const std::string text = error.what();
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

Json parse(const std::string& text, const std::string& source) {
  try {
    return parse_json<Json>(text);
  } catch (const Json::parse_error& error) {
    fail(ErrorKind::data, "{}: malformed JSON: {}", source, reason(error));
  }
}

void add_object(Json value, const std::string& source, std::vector<Row>& rows) {
  if (!value.is_object()) fail(ErrorKind::data, "{}: want a JSON object, got {}", source, value.type_name());
  rows.push_back({std::move(value), source});
}

std::vector<Row> read_lines(std::istream& in, const fs::path& file) {
  std::vector<Row> rows;
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    const std::string source = fmt::format("{}:{}", file.string(), number);
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      fail(ErrorKind::data, "{}: empty line; every line holds one JSON object", source);
    }
    add_object(parse(line, source), source, rows);
  }
  return rows;
}

std::vector<Row> read_array(std::istream& in, const fs::path& file) {
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::vector<Row> rows;
  const Json document = parse(text, file.string());
  for (size_t i = 0; i < document.size(); ++i) add_object(document[i], fmt::format("{}[{}]", file.string(), i), rows);
  return rows;
}

// Data files of a folder in order of name; all: those of other formats too.
std::vector<fs::path> files_in(const fs::path& folder, const std::string& prefix, bool (*wanted)(const fs::path&)) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file() || !wanted(entry.path())) continue;
    const std::string name = entry.path().filename();
    if (name.starts_with(prefix)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> files_of_split(const fs::path& folder, const std::string& split,
                                     bool (*wanted)(const fs::path&)) {
  for (const auto& [where, prefix] : {std::pair{folder, split + "."},
                                      {folder, split + "-"},
                                      {folder / "data", split + "."},
                                      {folder / "data", split + "-"},
                                      {folder / split, std::string()}}) {
    std::vector<fs::path> files = files_in(where, prefix, wanted);
    if (!files.empty()) return files;
  }
  // Files that are named after no split are all "train", as Hugging Face reads such a folder.
  if (split == "train") return files_in(folder, "", wanted);
  return {};
}

}  // namespace

std::vector<Row> read_rows(const fs::path& file) {
  if (!is_json(file)) refuse_format(file);
  InputFile in(file);
  char first = 0;
  in >> first;
  in.clear();
  in.seekg(0);
  std::vector<Row> rows = first == '[' ? read_array(in, file) : read_lines(in, file);
  if (rows.empty()) fail(ErrorKind::data, "{}: holds no rows", file.string());
  return rows;
}

std::vector<Row> read_data_path(const fs::path& path, const std::string& split) {
  if (!fs::exists(path)) fail(ErrorKind::data, "{}: no such file or folder (data_path)", path.string());
  if (!fs::is_directory(path)) return read_rows(path);
  const std::vector<fs::path> files = files_of_split(path, split, is_json);
  if (files.empty()) {
    const std::vector<fs::path> others = files_of_split(path, split, is_binary);
    if (!others.empty()) refuse_format(others.front());
    fail(ErrorKind::data, "{}: no file for split '{}'; want {}.jsonl, data/{}-*.jsonl or {}/*.jsonl", path.string(),
         split, split, split, split);
  }
  std::vector<Row> rows;
  for (const fs::path& file : files) {
    std::vector<Row> more = read_rows(file);
    std::move(more.begin(), more.end(), std::back_inserter(rows));
  }
  return rows;
}

std::string text_field(const Row& row, const std::string& key) {
  const auto found = row.value.find(key);
  if (found == row.value.end()) {
    std::vector<std::string> keys;
    for (const auto& entry : row.value.items()) keys.push_back(entry.key());
    fail(ErrorKind::data, "{}: no field '{}'; it has: {}", row.source, key, joined(keys));
  }
  if (found->is_structured() || found->is_null()) {
    fail(ErrorKind::data, "{}: field '{}' is {}, want text", row.source, key, found->type_name());
  }
  return found->is_string() ? found->get<std::string>() : json_text(*found);
}

}  // namespace hexad::data
