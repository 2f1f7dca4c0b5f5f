// The formats of public data sets, told apart by the columns of their rows: questions and answers, prompts with or
// without a completion, conversations, texts, pairs of a better and a worse answer. As TRL reads them, where it does
// (its page "Dataset formats and types").
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hexad::text {

// What a row says, whatever its columns are called.
struct RowText {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json rejected;  // of a pair: the worse conversation, `messages` being the better; else null
  std::string answer;
  size_t prompt_messages = 0;  // so many messages are the prompt; 0: all but an answer at the end
  bool is_plain = false;       // the contents are text as it is to be read, without a chat template
};

struct RowFormat {
  std::string name;                  // "conversational prompt + completion"
  std::vector<std::string> columns;  // those that are read
  // Throws Error(data) that begins with `source`.
  std::function<RowText(const nlohmann::ordered_json& row, const std::string& source)> read;
};

// What rows are wanted for.
enum class RowUse { prompts, conversations, pairs };

struct RowWish {
  RowUse use = RowUse::prompts;
  std::optional<std::string> answer;  // the column of the answer; "": rows have none; nothing: one of the usual names
};

// The format of rows that have these columns, the first of which is `first`, from `source`; nothing where the columns
// say nothing, or have "input" and "output" (or the named answer), or "input" alone. Throws Error(data) for one that is
// known and not read (unpaired preference, stepwise supervision), and where several columns could be the prompt, or the
// answer: the message names the two keys of a configuration that decide.
std::optional<RowFormat> row_format(const std::set<std::string>& columns, const nlohmann::ordered_json& first,
                                    const std::string& source, const RowWish& wish);

// A pair of answers. The prompt may be a column of its own, or what both answers begin with; each may be text or
// messages. `with_template`: text is what a user asks and an assistant answers, else it is plain.
struct PairColumns {
  std::string prompt = "prompt", chosen = "chosen", rejected = "rejected";
  bool with_template = false;
};
RowText read_pair(const nlohmann::ordered_json& row, const std::string& source, const PairColumns& columns);

}  // namespace hexad::text
