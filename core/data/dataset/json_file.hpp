// Rows of JSON files, each with the place it came from.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hexad::data {

struct Row {
  nlohmann::ordered_json value;  // an object
  std::string source;            // "folder/train.jsonl:12", for messages
};

// *.jsonl: one object a line; an empty or malformed line is an Error(data) that names file:line. *.json: an array of
// objects, or one object a line as well. Other formats are refused with the command that converts them.
std::vector<Row> read_rows(const std::filesystem::path& file);

// The rows of a local data set: a file, or a folder that holds, for `split`, <split>.jsonl / .json, <split>-*.jsonl,
// data/<split>*.jsonl or <split>/*.jsonl, or, when nothing is named after a split, *.jsonl of any name.
std::vector<Row> read_data_path(const std::filesystem::path& path, const std::string& split);

// A field as text: strings as they are, other scalars as JSON. Throws Error(data) naming the source and the keys there
// are.
std::string text_field(const Row& row, const std::string& key);

}  // namespace hexad::data
