// A row of a table, and its fields.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace hexad::table {

struct Row {
  nlohmann::ordered_json value;  // an object; its numbers stay as they were written (parse_data)
  std::string source;            // "folder/train.jsonl:12", "train.parquet[11]", for messages
  bool is_only = false;          // the one row of a JSON file
};

// The field `key`, or b in the object a for "a.b" (lib/base/json_field.hpp); null if there is none.
const nlohmann::ordered_json* find_field(const Row& row, const std::string& key);
// Throws Error(data) naming the source and the keys there are.
const nlohmann::ordered_json& field(const Row& row, const std::string& key);
// A field as text: strings as they are, other scalars as they are written in the file. Throws Error(data).
std::string text_field(const Row& row, const std::string& key);

// Of an object that stands where rows are wanted: how to take the rows out of it, where it has a list of objects that
// are no messages; "" where it has none.
std::string list_hint(const nlohmann::ordered_json& object, const std::string& file);

}  // namespace hexad::table
