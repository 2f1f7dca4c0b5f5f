// Rows of JSON files as records: conversations, and two answers to one prompt, the better and the worse, as NeMo-RL's
// preference datasets have them.
#pragma once
#include "core/data/dataset/dataset.hpp"
#include "core/data/dataset/json_file.hpp"

namespace hexad::data {

// {input_key: question, output_key: answer} (defaults "input", "output") as a user's and an assistant's message. The
// other fields become metadata. An output_key of "" says that rows have no answer. Throws Error(data) naming row and
// key where the answer is missing, or empty although output_key is given.
Record response_record(const Row& row, const config::DatasetConfig& config);

// {"messages": [...]} (chat_key) as it is, with a system message from the field system_key or else from system_prompt,
// and tools from tool_key ("tools"). The answer is the field output_key, as above, or else what the assistant says in
// the last message, if that is the assistant's.
Record conversation_record(const Row& row, const config::DatasetConfig& config);

// Throws Error(data) unless `messages`, the row's field `key`, is a list of at least one object with a role, and with a
// content that is absent, null, text or a list of objects, and with tool_calls that are absent, null or such a list.
void check_messages(const nlohmann::ordered_json& messages, const Row& row, const std::string& key);

// What a message's content says, be it text, parts of text or null.
std::string content_text(const nlohmann::ordered_json& content);

// The row's tools: a list of objects, each of them or the whole list perhaps as JSON text; null: none. Throws
// Error(data) for anything else.
nlohmann::ordered_json tools_of(const Row& row, const std::string& key = "tools");

// A key of the dataset's own, if it is set. Throws Error(config) unless it is text.
std::optional<std::string> own_key(const config::DatasetConfig& config, const std::string& key);

// {"context": [messages], "completions": [{"rank": 0, "completion": [messages]}, {"rank": 1, ...}]}: two completions,
// that of the lower rank is the better one. Throws Error(data) naming the row, also where the ranks are equal.
Record preference_record(const Row& row, const config::DatasetConfig& config);

// {prompt_key: text or messages, chosen_key: text, rejected_key: text} (defaults "prompt", "chosen", "rejected").
Record binary_preference_record(const Row& row, const config::DatasetConfig& config);

}  // namespace hexad::data
