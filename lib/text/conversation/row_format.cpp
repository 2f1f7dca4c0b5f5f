#include "lib/text/conversation/row_format.hpp"

#include "lib/base/error.hpp"
#include "lib/base/json_field.hpp"
#include "lib/base/text.hpp"
#include "lib/text/conversation/message.hpp"
#include "lib/text/conversation/row_field.hpp"
#include "lib/text/conversation/row_reader.hpp"

namespace hexad::text {
namespace {

using Json = nlohmann::ordered_json;

// What rows have, and what is wanted of them.
struct Columns {
  const std::set<std::string>& columns;
  const Json& first;
  const std::string& source;
  const RowWish& wish;

  bool has(const std::string& column) const { return columns.contains(column); }
  bool lists(const std::string& column) const { return is_list(first, column); }
};

constexpr const char* kGround = "reward_model.ground_truth";  // verl's

[[noreturn]] void refuse_type(const Columns& table, const char* type, const char* columns, const char* hint) {
  fail(ErrorKind::data, "{}: rows of {} ({}) are not read: {}", table.source, type, columns, hint);
}

void refuse_unread(const Columns& table) {
  if (table.has("completion") && table.has("label"))
    refuse_type(
        table, "unpaired preference", "prompt, completion, label",
        "no algorithm here trains on single answers with a label. dpo and rm want chosen and rejected; sft takes "
        "the good ones without the column 'label'");
  if (table.has("completions") && table.has("labels"))
    refuse_type(table, "stepwise supervision", "prompt, completions, labels",
                "no algorithm here trains a model of rewards for steps. rm wants chosen and rejected");
}

// How a configuration says that `column` is read.
std::string named(const Columns& table, const std::string& column) {
  return table.lists(column) ? fmt::format("dataset_name: openai_format with chat_key: {}", column)
                             : fmt::format("dataset_name: ResponseDataset with input_key: {}", column);
}

[[noreturn]] void refuse_both(const Columns& table, const std::vector<std::string>& prompts) {
  std::vector<std::string> ways;
  for (const std::string& column : prompts) ways.push_back(named(table, column));
  fail(ErrorKind::data,
       "{}: rows have {}, and each could be what the model is to read. Two keys of the data set decide, one for the "
       "prompt and output_key for the answer: {}",
       table.source, joined(prompts, " and "), joined(ways, "; or "));
}

[[noreturn]] void refuse_answers(const Columns& table, const std::string& prompt,
                                 const std::vector<std::string>& answers) {
  fail(ErrorKind::data,
       "{}: rows have {}, and each could be the answer. Two keys of the data set decide, one for the prompt and "
       "output_key for the answer: {} and output_key: {}",
       table.source, joined(answers, " and "), named(table, prompt), answers.back());
}

// The column of the answer to `prompt`, which perhaps ends with one itself; "" where there is none.
std::string answer_column(const Columns& table, const std::string& prompt) {
  if (table.wish.answer) return *table.wish.answer;
  const bool trains = table.wish.use == RowUse::conversations, is_prompt = prompt == "prompt";
  if (trains && (prompt == "messages" || prompt == "conversations")) return "";
  if (trains && is_prompt && table.has("completion")) return "completion";
  std::vector<std::string> found;
  if (prompt == "messages" && table.lists(prompt) && !table.first.at(prompt).empty()) {
    const Json& last = table.first.at(prompt).back();
    if (last.is_object() && last.value("role", Json()) == "assistant" && is_answer(last)) found.push_back(prompt);
  }
  for (const char* column : {"completion", "response", "solution", "answer", "ground_truth"})
    if (table.has(column) && (is_prompt || column != std::string("completion"))) found.push_back(column);
  if (find_field(table.first, kGround)) found.push_back(kGround);
  if (found.size() > 1) refuse_answers(table, prompt, found);
  return found.empty() || found[0] == prompt ? "" : found[0];
}

RowFormat format(const Columns& table, const std::string& prompt, const std::string& answer) {
  RowFormat out{prompt, {prompt}, {}};
  if (!answer.empty()) out.name += " + " + answer, out.columns.push_back(answer);
  if (prompt == "prompt")
    out.name = table.lists(prompt) ? "conversational " + out.name : out.name + " as text, without chat template";
  return out;
}

RowFormat pair_format(const Columns& table) {
  RowFormat out{"chosen + rejected", {"chosen", "rejected"}, {}};
  const bool is_explicit = table.has("prompt"), listed = table.lists("chosen");
  for (const char* column : {"question", "problem", "instruction", "input"}) {
    if (is_explicit || listed || !table.has(column)) continue;
    fail(ErrorKind::data,
         "{}: rows have '{}' beside 'chosen' and 'rejected', and no 'prompt': is it the prompt? Then dataset_name: "
         "BinaryPreferenceDataset with prompt_key: {}, chosen_key: chosen and rejected_key: rejected says so",
         table.source, column, column);
  }
  if (is_explicit) out.columns.push_back("prompt");
  out.name = is_explicit ? "prompt + " + out.name : out.name + ", prompt implicit";
  if (listed || table.lists("prompt"))
    out.name = "conversational " + out.name;
  else
    out.name += " as text, without chat template";
  out.read = [](const Json& row, const std::string& source) { return read_pair(row, source, {}); };
  return out;
}

RowFormat alpaca_format(const Columns& table) {
  const std::string answer = table.wish.answer.value_or("output");
  RowFormat out{"instruction + output (Alpaca)", {"instruction", "input", answer, "system", "history"}, {}};
  out.read = [answer](const Json& row, const std::string& source) { return read_alpaca(row, source, answer); };
  return out;
}

RowFormat prompt_format(const Columns& table, const std::string& prompt) {
  const std::string answer = answer_column(table, prompt);
  RowFormat out = format(table, prompt, answer);
  if (prompt == "messages") {
    out.read = [answer](const Json& row, const std::string& source) { return read_conversation(row, source, answer); };
  } else if (prompt == "conversations") {
    out.name += " (ShareGPT)", out.columns.push_back("system");
    out.read = [answer](const Json& row, const std::string& source) { return read_share_gpt(row, source, answer); };
  } else if (prompt == "prompt") {
    out.read = [answer](const Json& row, const std::string& source) { return read_prompt(row, source, answer); };
  } else {
    out.read = [=](const Json& row, const std::string& source) { return read_question(row, source, prompt, answer); };
  }
  return out;
}

std::optional<RowFormat> text_format(const Columns& table) {
  if (!table.has("text")) return std::nullopt;
  return RowFormat{"text, without chat template", {"text"}, read_text};
}

}  // namespace

std::optional<RowFormat> row_format(const std::set<std::string>& columns, const Json& first, const std::string& source,
                                    const RowWish& wish) {
  const Columns table{columns, first, source, wish};
  if (wish.use == RowUse::pairs && table.has("chosen") && table.has("rejected")) return pair_format(table);
  const bool alpaca = table.has("instruction") && table.has("output");
  const std::string output = wish.answer.value_or("output");
  if (table.has("input") && !alpaca && (output.empty() || table.has(output))) return std::nullopt;
  refuse_unread(table);
  std::vector<std::string> prompts;
  for (const char* column : {"messages", "conversations", "prompt", "question", "problem"})
    if (table.has(column)) prompts.push_back(column);
  if (alpaca) prompts.push_back("instruction");
  if (table.has("input") && !alpaca) prompts.push_back("input");
  if (prompts.size() > 1) refuse_both(table, prompts);
  if (prompts.empty()) return text_format(table);
  if (prompts[0] == "input") return std::nullopt;
  RowFormat out = alpaca ? alpaca_format(table) : prompt_format(table, prompts[0]);
  if (table.has("tools")) out.name += " with tools", out.columns.push_back("tools");
  return out;
}

}  // namespace hexad::text
