// The typed view of the `data` and `env` blocks. Field names are the keys; docs/config.md says what each means.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hexad::config {

// One dataset: an element of data.train or data.validation with data.default filled in.
struct DatasetConfig {
  std::string dataset_name;
  std::optional<std::string> data_path;
  std::optional<std::string> input_key;
  std::optional<std::string> output_key;
  std::optional<std::string> subset;
  std::optional<std::string> split;
  std::optional<int64_t> max_samples;
  double split_validation_size = 0;
  int64_t seed = 42;
  int64_t repeat = 1;
  std::optional<std::string> prompt_file;
  std::optional<std::string> system_prompt_file;
  std::string processor = "math_hf_data_processor";
  std::string env_name = "math";
  nlohmann::ordered_json spec;  // the whole mapping, with the keys of a dataset's own
};

struct DataConfig {
  int64_t max_input_seq_length = 512;
  bool shuffle = true;
  bool add_bos = true, add_eos = true, add_generation_prompt = false;  // of supervised training's conversations
  std::vector<DatasetConfig> train;
  std::vector<DatasetConfig> validation;  // empty: none
};

// env.<name>: the keyword arguments of each environment, by name.
using EnvConfig = std::map<std::string, nlohmann::ordered_json>;

}  // namespace hexad::config
