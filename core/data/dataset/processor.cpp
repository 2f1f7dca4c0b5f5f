#include "core/data/dataset/processor.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/joined.hpp"
#include "core/base/suggest.hpp"

namespace hexad::data {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kPromptProcessors = {"default", "math_hf_data_processor", "math_data_processor"};
const std::string kSft = "sft_processor";

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
std::string message_chunk(const Record& record, size_t index, const ProcessorOptions& options, const TextTools& tools,
                          std::string& before) {
  const Json until(record.messages.begin(), record.messages.begin() + static_cast<std::ptrdiff_t>(index) + 1);
  const std::string role = record.messages[index].at("role");
  const bool prompt = options.add_generation_prompt && (role == "user" || role == "tool");
  const std::string text = tools.render(until, {prompt, record.tools});
  const auto differs = std::mismatch(text.begin(), text.end(), before.begin(), before.end()).first;
  std::string chunk(differs, text.end());
  before = text;
  if (index == 0 && options.add_bos && !chunk.starts_with(options.bos_token)) chunk = options.bos_token + chunk;
  if (index + 1 == record.messages.size()) {
    chunk.erase(chunk.find_last_not_of('\n') + 1);
    if (options.add_eos && !chunk.ends_with(options.eos_token)) chunk += options.eos_token;
  }
  return chunk;
}

void process_conversation(const Record& record, const ProcessorOptions& options, const TextTools& tools, Datum& datum) {
  std::string before;
  std::vector<std::vector<int64_t>> ids;
  int64_t length = 0;
  for (size_t i = 0; i < record.messages.size(); ++i) {
    const std::string chunk = message_chunk(record, i, options, tools, before);
    datum.text += chunk;
    ids.push_back(tools.encode(chunk));
    length += static_cast<int64_t>(ids.back().size());
  }
  const bool too_long = length >= options.max_seq_length;
  const size_t stub = too_long ? static_cast<size_t>(stub_length(options.max_seq_length, ids.size())) : 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (too_long) ids[i].resize(std::min(ids[i].size(), stub));
    datum.token_ids.insert(datum.token_ids.end(), ids[i].begin(), ids[i].end());
    datum.token_mask.insert(datum.token_mask.end(), ids[i].size(),
                            record.messages[i].at("role") == "assistant" ? 1.0f : 0.0f);
  }
  if (too_long) datum.loss_multiplier = 0;
}

}  // namespace

void check_processor(const std::string& name) {
  std::vector<std::string> known = kPromptProcessors;
  known.push_back(kSft);
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  fail(ErrorKind::config, "processor: unknown processor '{}'{}; known: {}", name, did_you_mean(name, known),
       joined(known));
}

Datum process(const Record& record, int64_t index, const std::string& task_name, const ProcessorOptions& options,
              const TextTools& tools) {
  check_processor(options.processor);
  Datum datum;
  datum.answer = record.answer;
  datum.index = index;
  datum.task_name = task_name;
  datum.env_name = options.env_name;
  datum.metadata = record.metadata;
  if (options.processor == kSft) {
    process_conversation(record, options, tools, datum);
  } else {
    process_prompt(record, options, tools, datum);
  }
  return datum;
}

}  // namespace hexad::data
