// Processors: from a record to the token ids of a prompt (reinforcement learning) or of a conversation (supervised).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/dataset/dataset.hpp"

namespace hexad::data {

struct RenderOptions {
  bool add_generation_prompt = false;
  nlohmann::ordered_json tools;  // null: none
};

// What the processors need of a tokenizer; the caller supplies it.
struct TextTools {
  // Text -> ids, without adding special tokens.
  std::function<std::vector<int64_t>(std::string_view text)> encode;
  // The same with those that the tokenizer itself puts around a text, for text without a chat template.
  std::function<std::vector<int64_t>(std::string_view text)> encode_plain;
  // Messages -> text by the chat template.
  std::function<std::string(const nlohmann::ordered_json& messages, const RenderOptions& options)> render;
};

struct ProcessorOptions {
  std::string processor = "math_hf_data_processor";  // data.*.processor
  std::string prompt;         // template text with {} (data.*.prompt_file); empty: the bare problem
  std::string system_prompt;  // data.*.system_prompt_file; empty: none
  std::string env_name = "math";
  int64_t max_seq_length = 512;  // data.max_input_seq_length
  // sft_processor and preference_processor.
  bool add_bos = true;
  bool add_eos = true;
  bool add_generation_prompt = false;
  std::string bos_token, eos_token;
  bool only_unmask_final = false;
};

// One sample ready for rollout or training.
struct Datum {
  std::vector<int64_t> token_ids;
  std::vector<float> token_mask;                        // of conversations: 1 on what is trained on; empty for prompts
  std::string text;                                     // what token_ids encode, before truncation
  std::vector<std::pair<size_t, size_t>> trained_text;  // of conversations: where in it what trains begins, its bytes
  std::string answer;                                   // ground truth
  float loss_multiplier = 1;                            // 0: too long, must not train
  bool drops_reasoning = false;                         // the chat template shows nothing of an answer's reasoning
  int64_t index = 0;
  std::string source;  // "train.jsonl:12", for messages
  std::string task_name;
  std::string env_name;
  nlohmann::ordered_json metadata;
};
// One that was drawn: who has it may keep it, for it is made anew each time.
using SharedDatum = std::shared_ptr<const Datum>;

// math_hf_data_processor, math_data_processor: of the messages before the answer the user's last one goes through the
// prompt template, the system prompt comes first, and the chat is rendered with a generation prompt. sft_processor: the
// whole conversation (a record that ends with a question gets its answer; its first question goes through the prompt
// template) with a mask. A prompt of max_seq_length tokens or more, or a conversation of more, is cut short and gets
// loss_multiplier 0, as in NeMo-RL. Throws Error that begins with the record's source.
Datum process(const Record& record, int64_t index, const std::string& task_name, const ProcessorOptions& options,
              const TextTools& tools);

// preference_processor: both conversations of a record, which leave the loss together where one is too long.
// Throws Error(data) for a record without a second one.
struct Pair {
  Datum chosen, rejected;
};
Pair process_pair(const Record& record, int64_t index, const std::string& task_name, const ProcessorOptions& options,
                  const TextTools& tools);

// 1 for every token of a message that is trained on: the assistant's ones, or the last one whoever's it is. `lengths`:
// of each message in tokens. NeMo-RL's add_loss_mask_to_message_log. The assistant's among the first `prompt` messages
// do not train.
std::vector<float> message_mask(const nlohmann::ordered_json& messages, const std::vector<int64_t>& lengths,
                                bool only_final, size_t prompt = 0);

// Throws Error(config) unless `name` is a known processor.
void check_processor(const std::string& name);

// Python's str.format with positional and empty replacement fields: "{}", "{0}", "{{" and "}}". `where` names the
// template in errors, and one without any field is one.
std::string format_template(std::string_view text, const std::vector<std::string>& arguments, std::string_view where);

// The contents of a prompt file without a byte order mark; Error(data) if it cannot be read, is blank or no text.
std::string read_prompt_file(const std::string& path);

}  // namespace hexad::data
