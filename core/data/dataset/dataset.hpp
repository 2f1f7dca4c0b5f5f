// Datasets: records read from files or made by a generator, before any template or tokenizer.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/config/typed/data_config.hpp"
#include "lib/table/lazy.hpp"
#include "lib/text/conversation/row_format.hpp"

namespace hexad::data {

// One example. `messages` is the conversation as it stands in the data, each {"role", "content", ...}: for
// reinforcement learning it is the prompt, with an answer at its end or without, and `answer` holds the ground truth;
// for supervised training it ends with the assistant's.
struct Record : text::RowText {
  std::string source;               // "train.jsonl:12" or "arithmetic#5", for messages
  nlohmann::ordered_json metadata;  // fields beyond those above; null if none
  nlohmann::ordered_json tools;     // tool definitions for the chat template; null if none
};

struct Dataset {
  std::string task_name;
  table::Lazy<Record> records;  // read when they are asked for; generated ones are there
  std::string format = "";      // where the columns told it: "conversational prompt + completion"
};

struct DatasetSplit {
  Dataset train;
  std::optional<Dataset> validation;  // when split_validation_size > 0, and of procedural datasets
};

// So many rows of a set are looked at before a run begins, what they are and whether they can be read. The others are
// read when they are drawn, and their errors come then.
constexpr int64_t kLookedAt = 4096;

// Opens or generates the dataset that `config` names:
//   ResponseDataset  data_path (a file of rows or a folder of them, lib/table), input_key, output_key, split; without
//                    input_key rows of any format that their columns tell (lib/text/conversation/row_format.hpp);
//   openai_format    data_path with {"messages": [...]} rows (key: chat_key), output_key, system_key, system_prompt,
//                    tool_key;
//   PreferenceDataset  data_path with {"context": [...], "completions": [{"rank", "completion": [...]}, ...]} rows;
//   BinaryPreferenceDataset  data_path with prompt_key, chosen_key and rejected_key;
//   arithmetic, puzzle, sliding_puzzle  procedural, see procedural.hpp;
//   any other name   a local folder in Hugging Face layout (<split>.jsonl, data/<split>*.parquet ...), else an error.
// Where there is no such file or folder, data_path and the last may be names that are in the Hub's cache (lib/hub).
// split_validation_size: a fraction (< 1) or a number of records, drawn by `seed`. `repeat` repeats the training
// records. Relative paths are relative to `root`. Malformed rows are an Error(data) that names file:line. Rows without
// an answer have none where output_key names no column of answers: either all of a ResponseDataset, or any of an
// openai_format.
DatasetSplit load_dataset(const config::DatasetConfig& config, const std::string& root = ".");

// Whether its records are made and not read.
bool is_generated(const config::DatasetConfig& config);

struct LoadedSet {
  const config::DatasetConfig* config;  // borrowed
  Dataset data;
};
struct LoadedSets {
  std::vector<LoadedSet> train, validation;
  std::vector<std::string> notes;    // lines about rows of validation sets that are not validated on
  std::vector<std::string> formats;  // a line for each training set whose format its columns told
};
// All of a run's. Validated on, as NeMo-RL does it, is what split_validation_size takes from training sets and then
// data.validation; held-out questions of generated training sets where there is no data.validation.
LoadedSets load_datasets(const config::DataConfig& data);

}  // namespace hexad::data
