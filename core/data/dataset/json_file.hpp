// Rows of JSON files, each with the place it came from.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hexad::data {

struct Row {
  nlohmann::ordered_json value;  // an object; its numbers stay as they were written (parse_data)
  std::string source;            // "folder/train.jsonl:12", for messages
  bool is_only = false;          // the file's one row
};

// *.jsonl: one object a line, but for blank lines; a malformed line is an Error(data) that names file:line. *.json: an
// array of objects, or one object a line as well. UTF-8, with a byte order mark or without. One object over several
// lines and other formats are refused with the command that converts them.
std::vector<Row> read_rows(const std::filesystem::path& file);

// The rows of a local data set: a file, or a folder that holds, for `split`, <split>.jsonl / .json, <split>-*.jsonl,
// data/<split>*.jsonl or <split>/*.jsonl, or, when nothing is named after a split, *.jsonl of any name.
std::vector<Row> read_data_path(const std::filesystem::path& path, const std::string& split);

// The field `key`, or for "a.b" without a field of that name the field b of the object a; null if there is none.
const nlohmann::ordered_json* find_field(const Row& row, const std::string& key);
// Throws Error(data) naming the source and the keys there are.
const nlohmann::ordered_json& field(const Row& row, const std::string& key);
// A field as text: strings as they are, other scalars as they are written in the file. Throws Error(data).
std::string text_field(const Row& row, const std::string& key);

}  // namespace hexad::data
