// What rows of one format say.
#pragma once
#include <string>

#include "lib/text/conversation/row_format.hpp"

namespace hexad::text {

// Every function throws Error(data) that begins with `source`. `answer`: the column of the answer; "": there is none.
//
// {"messages": [...]}, whose last one is the answer where no column has it.
RowText read_conversation(const nlohmann::ordered_json& row, const std::string& source, const std::string& answer);
// {"conversations": [{"from": "human", "value": ...}, {"from": "gpt", ...}], "system": ...}, or with role and content.
RowText read_share_gpt(const nlohmann::ordered_json& row, const std::string& source, const std::string& answer);
// {"prompt": text or messages, `answer`: text or messages}: of text nothing but these is read.
RowText read_prompt(const nlohmann::ordered_json& row, const std::string& source, const std::string& answer);
// A question, which a user asks.
RowText read_question(const nlohmann::ordered_json& row, const std::string& source, const std::string& question,
                      const std::string& answer);
// {"instruction", "input", "output", "system"}: a user's message of the first two.
RowText read_alpaca(const nlohmann::ordered_json& row, const std::string& source, const std::string& answer);
// {"text": ...}: all of it is what a model is to write.
RowText read_text(const nlohmann::ordered_json& row, const std::string& source);

}  // namespace hexad::text
