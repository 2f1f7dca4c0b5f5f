// Rows that hold two answers to one prompt, the better and the worse, as NeMo-RL's preference datasets have them.
#pragma once
#include "core/data/dataset/dataset.hpp"
#include "core/data/dataset/json_file.hpp"

namespace hexad::data {

// {"context": [messages], "completions": [{"rank": 0, "completion": [messages]}, {"rank": 1, ...}]}: two completions,
// that of the lower rank is the better one. Throws Error(data) naming the row, also where the ranks are equal.
Record preference_record(const Row& row, const config::DatasetConfig& config);

// {prompt_key: text or messages, chosen_key: text, rejected_key: text} (defaults "prompt", "chosen", "rejected").
Record binary_preference_record(const Row& row, const config::DatasetConfig& config);

}  // namespace hexad::data
