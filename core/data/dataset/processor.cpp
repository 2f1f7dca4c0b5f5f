#include "core/data/dataset/processor.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/text/conversation/message.hpp"
#include "lib/text/template/turns.hpp"

namespace hexad::data {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kPromptProcessors = {"default", "math_hf_data_processor", "math_data_processor"};
const std::string kSft = "sft_processor", kPreference = "preference_processor";

// What is left of every message of an over-long sample.
int64_t stub_length(int64_t max_seq_length, size_t messages) {
  return std::min<int64_t>(4, max_seq_length / static_cast<int64_t>(messages));
}

// The user's message `asked`, the first or last one, in the prompt's template, and the system prompt before all.
Json with_prompt_files(Json messages, size_t asked, const char* which, const Record& record,
                       const ProcessorOptions& options) {
  if (!options.prompt.empty()) {
    const bool has_text = asked < messages.size() && messages[asked].value("content", Json()).is_string();
    if (!has_text)
      fail(ErrorKind::data,
           "prompt_file wraps the {} user's message, which has to be text, and the conversation has none", which);
    const std::string problem = messages[asked].at("content");
    messages[asked]["content"] = format_template(options.prompt, {problem}, "prompt_file");
  }
  if (options.system_prompt.empty()) return messages;
  if (record.is_plain)
    fail(
        ErrorKind::data,
        "system_prompt_file is for messages, and the row is text that is read without a chat template. With input_key: "
        "prompt a user asks it");
  messages.insert(messages.begin(), text::message("system", options.system_prompt));
  return messages;
}

// The conversation that the model answers: without the answer at its end, the last user's message in the template.
Json prompt_messages(const Record& record, const ProcessorOptions& options) {
  const bool answered = !record.messages.empty() && text::is_answer(record.messages.back());
  const size_t count = record.prompt_messages > 0 ? record.prompt_messages : record.messages.size() - answered;
  Json messages = Json::array();
  size_t asked = count;
  for (size_t i = 0; i < count; ++i) {
    messages.push_back(record.messages[i]);
    if (messages[i].at("role") == "user") asked = i;
  }
  if (asked == count)
    fail(ErrorKind::data, "a prompt has a user's message before the answer; processor {} found none",
         options.processor);
  return with_prompt_files(std::move(messages), asked, "last", record, options);
}

void process_prompt(const Record& record, const ProcessorOptions& options, const TextTools& tools, Datum& datum) {
  const Json messages = prompt_messages(record, options);
  datum.text = record.is_plain ? text::said(messages[0]) : tools.render(messages, {true, record.tools});
  datum.token_ids = (record.is_plain ? tools.encode_plain : tools.encode)(datum.text);
  if (datum.token_ids.empty()) fail(ErrorKind::data, "the prompt has no tokens");
  if (static_cast<int64_t>(datum.token_ids.size()) < options.max_seq_length) return;
  datum.token_ids.resize(stub_length(options.max_seq_length, 1));
  datum.loss_multiplier = 0;
}

// A message as text and as token ids.
struct Turn {
  std::string text;
  std::vector<int64_t> ids;
};
using Turns = std::vector<Turn>;

Turns encode_messages(const Json& messages, const Json& tool_list, const ProcessorOptions& options,
                      const TextTools& tools, Datum& datum) {
  std::vector<std::string> turns =
      text::turn_texts(messages, options.add_generation_prompt, [&](const Json& shown, bool prompt) {
        return tools.render(shown, {prompt, tool_list});
      });
  for (size_t i = 0; i < turns.size(); ++i) {
    if (messages[i].at("role") == "assistant" && text::drops_reasoning(messages[i], turns[i]))
      datum.drops_reasoning = true;
  }
  const bool has_bos = joined(turns, "").starts_with(options.bos_token);
  if (options.add_bos && !has_bos) turns.front().insert(0, options.bos_token);
  std::string& last = turns.back();
  last.erase(last.find_last_not_of('\n') + 1);
  if (options.add_eos && !last.ends_with(options.eos_token)) last += options.eos_token;
  Turns encoded;
  for (std::string& turn : turns) {
    std::vector<int64_t> ids = tools.encode(turn);
    encoded.push_back({std::move(turn), std::move(ids)});
  }
  return encoded;
}

// Of text without a template, which is read as one, as TRL does it: the answer begins where its tokens depart from
// those of the prompt alone.
Turns encode_plain(const Json& messages, const ProcessorOptions& options, const TextTools& tools) {
  const std::string prompt = messages.size() > 1 ? text::said(messages[0]) : "";
  std::string answer = text::said(messages.back());
  if (options.add_eos && !answer.ends_with(options.eos_token)) answer += options.eos_token;
  std::vector<int64_t> ids = tools.encode_plain(prompt + answer);
  if (messages.size() == 1) return {{answer, std::move(ids)}};
  const std::vector<int64_t> alone = tools.encode_plain(prompt);
  const auto begin = std::ranges::mismatch(ids, alone).in1;
  return {{prompt, {ids.begin(), begin}}, {answer, {begin, ids.end()}}};
}

Turns encoded(const Record& record, const Json& messages, const ProcessorOptions& options, const TextTools& tools,
              Datum& datum) {
  return record.is_plain ? encode_plain(messages, options, tools)
                         : encode_messages(messages, record.tools, options, tools, datum);
}

// The prompt of both sides ends where the tokens of either depart from it, as in TRL.
void end_prompts_alike(Turns& chosen, Turns& rejected) {
  const size_t length = std::min(chosen[0].ids.size(), rejected[0].ids.size());
  for (Turns* turns : {&chosen, &rejected}) {
    auto& prompt = turns->at(0).ids;
    const auto end = prompt.begin() + static_cast<std::ptrdiff_t>(length);
    turns->at(1).ids.insert(turns->at(1).ids.begin(), end, prompt.end());
    prompt.erase(end, prompt.end());
  }
}

int64_t total_length(const Turns& turns) {
  int64_t length = 0;
  for (const Turn& turn : turns) length += static_cast<int64_t>(turn.ids.size());
  return length;
}

// The conversation's tokens and mask; a stub of each message, outside the loss, where it does not fit.
// `prompt`: so many messages never train.
void set_conversation(const Json& messages, size_t prompt, Turns turns, bool fits, const ProcessorOptions& options,
                      Datum& datum) {
  std::vector<int64_t> lengths;
  for (auto& [text, ids] : turns) {
    if (!fits) ids.resize(std::min<size_t>(ids.size(), stub_length(options.max_seq_length, messages.size())));
    datum.token_ids.insert(datum.token_ids.end(), ids.begin(), ids.end());
    lengths.push_back(static_cast<int64_t>(ids.size()));
  }
  datum.token_mask = message_mask(messages, lengths, options.only_unmask_final, prompt);
  auto mask = datum.token_mask.begin();
  for (const auto& [text, ids] : turns) {
    if (!ids.empty() && *mask == 1) datum.trained_text.emplace_back(datum.text.size(), text.size());
    datum.text += text;
    mask += static_cast<std::ptrdiff_t>(ids.size());
  }
  datum.loss_multiplier = fits ? 1 : 0;
}

// A conversation to train on: its first question in the prompt's template, as NeMo-RL has it.
Json conversation_to_train(Json messages, const Record& record, const ProcessorOptions& options) {
  if (messages.empty()) fail(ErrorKind::data, "a conversation without messages");
  size_t asked = 0;
  while (asked < messages.size() && messages[asked].at("role") != "user") ++asked;
  return with_prompt_files(std::move(messages), asked, "first", record, options);
}

size_t prompt_size(const Record& record, const ProcessorOptions& options) {
  return record.prompt_messages > 0 && !options.system_prompt.empty() ? record.prompt_messages + 1
                                                                      : record.prompt_messages;
}

// The record's messages, and its answer where they end before it.
Json whole_conversation(const Record& record) {
  Json messages = record.messages;
  if (messages.empty() || record.answer.empty()) return messages;
  const Json& last = messages.back();
  if (!text::is_answer(last)) {
    messages.push_back(text::message("assistant", record.answer));
  } else if (text::said(last) != record.answer) {
    fail(ErrorKind::data,
         "the conversation ends with an answer, and the column that output_key names has another: '{}'. Leave "
         "output_key out to train on the conversation as it is",
         record.answer);
  }
  return messages;
}

void process_conversation(const Record& record, const ProcessorOptions& options, const TextTools& tools, Datum& datum) {
  const Json messages = conversation_to_train(whole_conversation(record), record, options);
  Turns turns = encoded(record, messages, options, tools, datum);
  const bool fits = total_length(turns) <= options.max_seq_length;
  set_conversation(messages, prompt_size(record, options), std::move(turns), fits, options, datum);
}

// What `make` throws names the record.
template <typename Make>
auto made_of(const Record& record, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", record.source, error.what());
  }
}

Datum labelled(const Record& record, int64_t index, const std::string& task_name, const ProcessorOptions& options) {
  Datum datum;
  datum.answer = record.answer;
  datum.index = index;
  datum.source = record.source;
  datum.task_name = task_name;
  datum.env_name = options.env_name;
  datum.metadata = record.metadata;
  return datum;
}

}  // namespace

void check_processor(const std::string& name) {
  std::vector<std::string> known = kPromptProcessors;
  known.insert(known.end(), {kSft, kPreference});
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  fail(ErrorKind::config, "processor: unknown processor '{}'{}; known: {}", name, did_you_mean(name, known),
       joined(known));
}

Datum process(const Record& record, int64_t index, const std::string& task_name, const ProcessorOptions& options,
              const TextTools& tools) {
  check_processor(options.processor);
  return made_of(record, [&] {
    Datum datum = labelled(record, index, task_name, options);
    if (options.processor == kSft) {
      process_conversation(record, options, tools, datum);
    } else {
      process_prompt(record, options, tools, datum);
    }
    return datum;
  });
}

Pair process_pair(const Record& record, int64_t index, const std::string& task_name, const ProcessorOptions& options,
                  const TextTools& tools) {
  return made_of(record, [&] {
    if (!record.rejected.is_array()) {
      fail(ErrorKind::data,
           "one answer and no worse one; preferences come from columns 'chosen' and 'rejected', or from dataset_name: "
           "PreferenceDataset");
    }
    ProcessorOptions final_only = options;
    final_only.only_unmask_final = record.prompt_messages == 0;  // the completions differ in the last message alone
    Pair pair{labelled(record, index, task_name, options), labelled(record, index, task_name, options)};
    const Json better = conversation_to_train(record.messages, record, options),
               worse = conversation_to_train(record.rejected, record, options);
    Turns chosen = encoded(record, better, options, tools, pair.chosen),
          rejected = encoded(record, worse, options, tools, pair.rejected);
    if (record.is_plain) end_prompts_alike(chosen, rejected);
    const size_t prompt = prompt_size(record, options);
    const bool fits = std::max(total_length(chosen), total_length(rejected)) <= options.max_seq_length;
    set_conversation(better, prompt, std::move(chosen), fits, final_only, pair.chosen);
    set_conversation(worse, prompt, std::move(rejected), fits, final_only, pair.rejected);
    return pair;
  });
}

std::vector<float> message_mask(const Json& messages, const std::vector<int64_t>& lengths, bool only_final,
                                size_t prompt) {
  std::vector<float> mask;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const bool trained = only_final ? i + 1 == lengths.size() : i >= prompt && messages[i].at("role") == "assistant";
    mask.insert(mask.end(), static_cast<size_t>(lengths[i]), trained ? 1.0f : 0.0f);
  }
  return mask;
}

}  // namespace hexad::data
