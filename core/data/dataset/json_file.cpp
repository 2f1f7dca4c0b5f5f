#include "core/data/dataset/json_file.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/input_file.hpp"
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

// Of an object that stands where rows are wanted: how to take the rows out of it, where it has a list of objects that
// are no messages.
std::string list_hint(const Json& object, const fs::path& file) {
  for (const auto& [key, value] : object.items()) {
    if (!value.is_array() || value.empty() || !value[0].is_object() || value[0].contains("role")) continue;
    return fmt::format(". If its list '{}' holds the rows: jq -c '.{}[]' {} > rows.jsonl", key, json_text(Json(key)),
                       file.string());
  }
  return "";
}

// Of a file whose first line is no JSON: an object that is written over several lines is named as that.
void refuse_one_object(const fs::path& file) {
  const std::string text = read_file(file);
  if (trimmed(text).find('\n') == std::string_view::npos) return;
  const Json whole = try_parse_json<Json>(text);
  if (!whole.is_object()) return;
  fail(ErrorKind::data,
       "{}: one JSON object over several lines; want rows: an object a line, or a list of objects in [ ]{}",
       file.string(), list_hint(whole, file));
}

void add_object(Json value, const std::string& source, std::vector<Row>& rows) {
  if (!value.is_object()) fail(ErrorKind::data, "{}: want a JSON object, got {}", source, value.type_name());
  rows.push_back({std::move(value), source});
}

std::vector<Row> read_lines(std::istream& in, const fs::path& file) {
  std::vector<Row> rows;
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    if (trimmed(line).empty()) continue;
    const std::string source = fmt::format("{}:{}", file.string(), number);
    try {
      add_object(parse_data(line, source), source, rows);
    } catch (const Error&) {
      if (rows.empty()) refuse_one_object(file);
      throw;
    }
  }
  return rows;
}

std::vector<Row> read_array(std::istream& in, const fs::path& file) {
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::vector<Row> rows;
  Json document = parse_data(text, file.string());
  for (size_t i = 0; i < document.size(); ++i)
    add_object(std::move(document[i]), fmt::format("{}[{}]", file.string(), i), rows);
  return rows;
}

// Data files of a folder in order of name; all: those of other formats too.
std::vector<fs::path> files_in(const fs::path& folder, const std::string& prefix, bool (*wanted)(const fs::path&)) {
  std::vector<fs::path> files;
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    const std::string name = entry.path().filename();
    if (wanted(entry.path()) && name.starts_with(prefix) && is_to_be_read(entry)) files.push_back(entry.path());
  }
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
  skip_mark(in, file);
  const auto begin = in.tellg();
  char first = 0;
  in >> first;
  in.clear();
  in.seekg(begin);
  std::vector<Row> rows = first == '[' ? read_array(in, file) : read_lines(in, file);
  if (rows.empty()) fail(ErrorKind::data, "{}: holds no rows", file.string());
  rows[0].is_only = rows.size() == 1;
  return rows;
}

std::vector<Row> read_data_path(const fs::path& path, const std::string& split) {
  if (!fs::is_directory(path)) return read_rows(path);
  const std::vector<fs::path> files = files_of_split(path, split, is_json);
  if (files.empty()) {
    const std::vector<fs::path> others = files_of_split(path, split, is_binary);
    if (!others.empty()) refuse_format(others.front());
    fail(ErrorKind::data, "{}: no file for split '{}'; want {}.jsonl, data/{}-*.jsonl or {}/*.jsonl; it holds {}",
         path.string(), split, split, split, split, listing_of(path));
  }
  std::vector<Row> rows;
  for (const fs::path& file : files) {
    std::vector<Row> more = read_rows(file);
    std::move(more.begin(), more.end(), std::back_inserter(rows));
  }
  return rows;
}

const Json* find_field(const Row& row, const std::string& key) {
  if (const auto found = row.value.find(key); found != row.value.end()) return &*found;
  const Json* at = &row.value;
  for (size_t begin = 0; begin != key.npos;) {
    const size_t dot = key.find('.', begin);
    const auto found = at->is_object() ? at->find(key.substr(begin, dot - begin)) : at->end();
    if (found == at->end()) return nullptr;
    at = &*found;
    begin = dot == key.npos ? key.npos : dot + 1;
  }
  return at;
}

const Json& field(const Row& row, const std::string& key) {
  if (const Json* found = find_field(row, key)) return *found;
  std::vector<std::string> keys;
  for (const auto& entry : row.value.items()) keys.push_back(entry.key());
  fail(ErrorKind::data, "{}: no field '{}'; it has: {}{}", row.source, key, joined(keys),
       row.is_only ? list_hint(row.value, row.source.substr(0, row.source.find_last_of(":["))) : "");
}

std::string text_field(const Row& row, const std::string& key) {
  const Json& value = field(row, key);
  if (value.is_structured() || value.is_null())
    fail(ErrorKind::data, "{}: field '{}' is {}, want text", row.source, key, value.type_name());
  return value.is_string() ? value.get<std::string>() : data_text(value);
}

}  // namespace hexad::data
