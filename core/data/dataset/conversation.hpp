// Rows of files as records: of NeMo-RL's data sets, whose columns the configuration names, and of formats that the
// columns tell.
#pragma once
#include "core/data/dataset/dataset.hpp"
#include "lib/table/row.hpp"

namespace hexad::data {

using table::Row;

// {input_key: question, output_key: answer} (defaults "input", "output") as a user's and an assistant's message. The
// other fields become metadata. An output_key of "" says that rows have no answer. Throws Error(data) naming row and
// key where the answer is missing, or empty although output_key is given.
Record response_record(const Row& row, const config::DatasetConfig& config);

// {"messages": [...]} (chat_key) as it is, with a system message from the field system_key or else from system_prompt,
// and tools from tool_key ("tools"). The answer is the field output_key, as above, or else what the assistant says in
// the last message, if that is the assistant's.
Record conversation_record(const Row& row, const config::DatasetConfig& config);

// The row's tools: a list of objects, each of them or the whole list perhaps as JSON text; null: none. Throws
// Error(data) for anything else.
nlohmann::ordered_json tools_of(const Row& row, const std::string& key = "tools");

// Of a row whose columns say what they are; its tools stand in the column "tools".
Record record_of(text::RowText said, const Row& row);

// How the rows of a ResponseDataset are read whose prompt nobody has named: by their columns. Nothing where these say
// nothing. Throws Error(data).
std::optional<text::RowFormat> recognised(const std::vector<Row>& rows, const config::DatasetConfig& config);
// Other columns than those of the format become metadata; an output_key's has to say something, as above.
Record recognised_record(const Row& row, const text::RowFormat& format, const config::DatasetConfig& config);

// A key of the dataset's own, if it is set. Throws Error(config) unless it is text.
std::optional<std::string> own_key(const config::DatasetConfig& config, const std::string& key);

// {"context": [messages], "completions": [{"rank": 0, "completion": [messages]}, {"rank": 1, ...}]}: two completions,
// that of the lower rank is the better one. Throws Error(data) naming the row, also where the ranks are equal.
Record preference_record(const Row& row, const config::DatasetConfig& config);

// {prompt_key, chosen_key, rejected_key} (defaults "prompt", "chosen", "rejected"), each text or messages; without a
// prompt it is what both answers begin with.
Record binary_preference_record(const Row& row, const config::DatasetConfig& config);

}  // namespace hexad::data
