// What a file of rows is, by its name.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace hexad::table {

enum class Form { json, csv, tsv, parquet, arrow };  // json: .jsonl too, for either may hold what the other does
enum class Packing { none, gz, zst };                // of texts alone: json, csv, tsv

struct Container {
  Form form = Form::json;
  Packing packing = Packing::none;
};

// ".jsonl, .json, .csv, .tsv (each also .gz or .zst), .parquet or .arrow", for messages.
extern const char* const kContainers;

// Nothing for any other name.
std::optional<Container> container_of(const std::filesystem::path& file);

// json, csv, tsv.
bool is_text(Form form);

// "parquet", "gz" ...; "" of Packing::none.
const char* name_of(Form form);
const char* name_of(Packing packing);

}  // namespace hexad::table
