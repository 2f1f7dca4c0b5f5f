#include "core/data/dataset/processor.hpp"

#include <algorithm>

#include "core/data/dataset/conversation.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
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

bool is_question(const Json& message) {
  return message.at("role") == "user" && message.contains("content") && message.at("content").is_string();
}

// The question `asked` in the prompt's template, and the system prompt before all.
void add_prompt_files(Json& messages, size_t asked, const ProcessorOptions& options) {
  if (!options.prompt.empty()) {
    const std::string problem = messages[asked].at("content");
    messages[asked]["content"] = format_template(options.prompt, {problem}, "prompt_file");
  }
  if (!options.system_prompt.empty()) {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", options.system_prompt}});
  }
}

// The conversation that the model answers: without the assistant's last message, the last user's message in the
// template.
Json prompt_messages(const Record& record, const ProcessorOptions& options) {
  Json messages = record.messages;
  if (!messages.empty() && messages.back().at("role") == "assistant") messages.erase(messages.size() - 1);
  if (messages.empty() || !is_question(messages.back()))
    fail(ErrorKind::data, "a prompt ends with a user's message of text; processor {} found none", options.processor);
  add_prompt_files(messages, messages.size() - 1, options);
  return messages;
}

void process_prompt(const Record& record, const ProcessorOptions& options, const TextTools& tools, Datum& datum) {
  datum.text = tools.render(prompt_messages(record, options), {true, record.tools});
  datum.token_ids = tools.encode(datum.text);
  if (datum.token_ids.empty()) fail(ErrorKind::data, "the prompt has no tokens");
  if (static_cast<int64_t>(datum.token_ids.size()) < options.max_seq_length) return;
  datum.token_ids.resize(stub_length(options.max_seq_length, 1));
  datum.loss_multiplier = 0;
}

// Token ids of each message.
using MessageIds = std::vector<std::vector<int64_t>>;

MessageIds encode_messages(const Json& messages, const Json& tool_list, const ProcessorOptions& options,
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
  MessageIds ids;
  for (const std::string& turn : turns) {
    datum.text += turn;
    ids.push_back(tools.encode(turn));
  }
  return ids;
}

int64_t total_length(const MessageIds& ids) {
  int64_t length = 0;
  for (const auto& message : ids) length += static_cast<int64_t>(message.size());
  return length;
}

// The conversation's tokens and mask; a stub of each message, outside the loss, where it does not fit.
void set_conversation(const Json& messages, MessageIds ids, bool fits, const ProcessorOptions& options, Datum& datum) {
  std::vector<int64_t> lengths;
  for (auto& message : ids) {
    if (!fits) message.resize(std::min<size_t>(message.size(), stub_length(options.max_seq_length, messages.size())));
    datum.token_ids.insert(datum.token_ids.end(), message.begin(), message.end());
    lengths.push_back(static_cast<int64_t>(message.size()));
  }
  datum.token_mask = message_mask(messages, lengths, options.only_unmask_final);
  datum.loss_multiplier = fits ? 1 : 0;
}

// A conversation to train on: its first question in the prompt's template, as NeMo-RL has it.
Json with_prompt_files(Json messages, const ProcessorOptions& options) {
  if (messages.empty()) fail(ErrorKind::data, "a conversation without messages");
  const auto asked = std::ranges::find_if(messages, [](const Json& message) { return message.at("role") == "user"; });
  if (!options.prompt.empty() && (asked == messages.end() || !is_question(*asked)))
    fail(ErrorKind::data,
         "prompt_file wraps the first user's message, which has to be text, and the conversation has none");
  add_prompt_files(messages, static_cast<size_t>(asked - messages.begin()), options);
  return messages;
}

// The record's messages, and its answer where they end before it.
Json whole_conversation(const Record& record) {
  Json messages = record.messages;
  if (messages.empty() || record.answer.empty()) return messages;
  const Json& last = messages.back();
  if (last.at("role") != "assistant") {
    messages.push_back({{"role", "assistant"}, {"content", record.answer}});
  } else if (!last.contains("content") || content_text(last.at("content")) != record.answer) {
    fail(ErrorKind::data,
         "the conversation ends with an answer, and the column that output_key names has another: '{}'. Leave "
         "output_key out to train on the conversation as it is",
         record.answer);
  }
  return messages;
}

void process_conversation(const Record& record, const ProcessorOptions& options, const TextTools& tools, Datum& datum) {
  const Json messages = with_prompt_files(whole_conversation(record), options);
  MessageIds ids = encode_messages(messages, record.tools, options, tools, datum);
  const bool fits = total_length(ids) <= options.max_seq_length;
  set_conversation(messages, std::move(ids), fits, options, datum);
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
           "one answer and no worse one; preferences come from dataset_name: PreferenceDataset or "
           "BinaryPreferenceDataset");
    }
    ProcessorOptions final_only = options;
    final_only.only_unmask_final = true;  // the completions differ in the last message alone
    Pair pair{labelled(record, index, task_name, options), labelled(record, index, task_name, options)};
    const Json better = with_prompt_files(record.messages, options),
               worse = with_prompt_files(record.rejected, options);
    MessageIds chosen = encode_messages(better, record.tools, options, tools, pair.chosen);
    MessageIds rejected = encode_messages(worse, record.tools, options, tools, pair.rejected);
    const bool fits = std::max(total_length(chosen), total_length(rejected)) <= options.max_seq_length;
    set_conversation(better, std::move(chosen), fits, final_only, pair.chosen);
    set_conversation(worse, std::move(rejected), fits, final_only, pair.rejected);
    return pair;
  });
}

std::vector<float> message_mask(const Json& messages, const std::vector<int64_t>& lengths, bool only_final) {
  std::vector<float> mask;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const bool trained = only_final ? i + 1 == lengths.size() : messages[i].at("role") == "assistant";
    mask.insert(mask.end(), static_cast<size_t>(lengths[i]), trained ? 1.0f : 0.0f);
  }
  return mask;
}

}  // namespace hexad::data
