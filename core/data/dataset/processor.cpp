#include "core/data/dataset/processor.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::data {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kPromptProcessors = {"default", "math_hf_data_processor", "math_data_processor"};
const std::string kSft = "sft_processor", kPreference = "preference_processor";

// What is left of every message of an over-long sample.
int64_t stub_length(int64_t max_seq_length, size_t messages) {
  return std::min<int64_t>(4, max_seq_length / static_cast<int64_t>(messages));
}

// The conversation that the model answers: without the assistant's last message, the last user's message in the
// template.
Json prompt_messages(const Record& record, const ProcessorOptions& options) {
  Json messages = record.messages;
  if (!messages.empty() && messages.back().at("role") == "assistant") messages.erase(messages.size() - 1);
  if (messages.empty() || messages.back().at("role") != "user" || !messages.back().contains("content") ||
      !messages.back().at("content").is_string()) {
    fail(ErrorKind::data, "{}: a prompt ends with a user's message of text; processor {} found none", record.source,
         options.processor);
  }
  if (!options.prompt.empty()) {
    const std::string problem = messages.back().at("content");
    messages.back()["content"] = format_template(options.prompt, {problem}, "prompt_file");
  }
  if (!options.system_prompt.empty()) {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", options.system_prompt}});
  }
  return messages;
}

void process_prompt(const Record& record, const ProcessorOptions& options, const TextTools& tools, Datum& datum) {
  datum.text = tools.render(prompt_messages(record, options), {true, record.tools});
  datum.token_ids = tools.encode(datum.text);
  if (datum.token_ids.empty()) fail(ErrorKind::data, "{}: the prompt has no tokens", record.source);
  if (static_cast<int64_t>(datum.token_ids.size()) < options.max_seq_length) return;
  datum.token_ids.resize(stub_length(options.max_seq_length, 1));
  datum.loss_multiplier = 0;
}

// What message `index` adds to the rendered conversation: the template is applied to one more message at a time, and
// the chunk is what differs from before (a template may close a turn differently when it is not the last).
std::string message_chunk(const Json& messages, const Json& tool_list, size_t index, const ProcessorOptions& options,
                          const TextTools& tools, std::string& before) {
  const Json until(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(index) + 1);
  const std::string role = messages[index].at("role");
  const bool prompt = options.add_generation_prompt && (role == "user" || role == "tool");
  const std::string text = tools.render(until, {prompt, tool_list});
  const auto differs = std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first;
  std::string chunk(differs, text.end());
  before = text;
  if (index == 0 && options.add_bos && !chunk.starts_with(options.bos_token)) chunk = options.bos_token + chunk;
  if (index + 1 == messages.size()) {
    chunk.erase(chunk.find_last_not_of('\n') + 1);
    if (options.add_eos && !chunk.ends_with(options.eos_token)) chunk += options.eos_token;
  }
  return chunk;
}

// Token ids of each message.
using MessageIds = std::vector<std::vector<int64_t>>;

MessageIds encode_messages(const Json& messages, const Json& tool_list, const ProcessorOptions& options,
                           const TextTools& tools, Datum& datum) {
  std::string before;
  MessageIds ids;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string chunk = message_chunk(messages, tool_list, i, options, tools, before);
    datum.text += chunk;
    ids.push_back(tools.encode(chunk));
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

// The record's messages, and its answer where they end before it.
Json whole_conversation(const Record& record) {
  Json messages = record.messages;
  if (messages.empty()) fail(ErrorKind::data, "{}: a conversation without messages", record.source);
  if (messages.back().at("role") == "user" && !record.answer.empty())
    messages.push_back({{"role", "assistant"}, {"content", record.answer}});
  return messages;
}

void process_conversation(const Record& record, const ProcessorOptions& options, const TextTools& tools, Datum& datum) {
  const Json messages = whole_conversation(record);
  MessageIds ids = encode_messages(messages, record.tools, options, tools, datum);
  const bool fits = total_length(ids) <= options.max_seq_length;
  set_conversation(messages, std::move(ids), fits, options, datum);
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
  Datum datum = labelled(record, index, task_name, options);
  if (options.processor == kSft) {
    process_conversation(record, options, tools, datum);
  } else {
    process_prompt(record, options, tools, datum);
  }
  return datum;
}

Pair process_pair(const Record& record, int64_t index, const std::string& task_name, const ProcessorOptions& options,
                  const TextTools& tools) {
  if (!record.rejected.is_array()) {
    fail(ErrorKind::data,
         "{}: one answer and no worse one; preferences come from dataset_name: PreferenceDataset or "
         "BinaryPreferenceDataset",
         record.source);
  }
  ProcessorOptions final_only = options;
  final_only.only_unmask_final = true;  // the completions differ in the last message alone
  Pair pair{labelled(record, index, task_name, options), labelled(record, index, task_name, options)};
  MessageIds chosen = encode_messages(record.messages, record.tools, options, tools, pair.chosen);
  MessageIds rejected = encode_messages(record.rejected, record.tools, options, tools, pair.rejected);
  const bool fits = std::max(total_length(chosen), total_length(rejected)) <= options.max_seq_length;
  set_conversation(record.messages, std::move(chosen), fits, final_only, pair.chosen);
  set_conversation(record.rejected, std::move(rejected), fits, final_only, pair.rejected);
  return pair;
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
