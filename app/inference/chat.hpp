// What `hexad chat` does: a conversation with a model, a line of the user's after the other.
#pragma once
#include <functional>
#include <iosfwd>
#include <string>

#include <nlohmann/json.hpp>

#include "app/inference/inference.hpp"

namespace hexad::inference {

struct ChatInput {
  std::string system = {};  // what the model is told first; empty: nothing
  bool greedy = false;
  bool terminal = false;  // somebody types: prompts, hints, and errors that end a turn and not the conversation
};

// The messages so far, of roles system, user and assistant, and what the model answers to them.
using Answer = std::function<std::string(const nlohmann::ordered_json& messages)>;

// Reads lines until `in` ends or says /quit, and writes the answer to each to `out`, followed by a line break.
// "/reset" forgets the conversation but for the system prompt, "/system TEXT" gives another one and forgets the rest,
// "//text" is the line "/text"; another line that begins with / is said to be no command, and blank lines are nothing.
// What is no answer goes to `said`. An Error(data) of `answer` takes the line back; on a terminal it is told of and the
// conversation goes on, otherwise it is thrown, naming the line. Returns the number of answers.
int64_t converse(std::istream& in, std::ostream& out, std::ostream& said, const ChatInput& input, const Answer& answer);

// The same with the model of a directory, through its chat template. Throws Error(config) where it has none. Where the
// overrides say no policy.max_total_sequence_length, it is the model's own, up to kChatTokens.
constexpr int64_t kChatTokens = 4096;
int64_t chat(const InferenceOptions& options, const ChatInput& input, std::istream& in, std::ostream& out,
             std::ostream& said);

}  // namespace hexad::inference
