// The turns of a conversation in the text that a chat template writes for all of it.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hexad::text {

// What a template writes for these messages, with the generation prompt behind them or without; throws Error where it
// refuses them.
using RenderMessages = std::function<std::string(const nlohmann::ordered_json& messages, bool prompt)>;

// The text of each message; together they are the text of the whole conversation. A template may write a turn otherwise
// where others follow, without its reasoning or what closes the last one: then the turn is what stands there of it.
// Where it refuses a conversation that ends with a message which the assistant neither says nor answers (a system
// prompt without a question), that message's text is part of the next one's. With `prompts` the generation prompt,
// where the template writes it before an answer, belongs to the user's or tool's message before that. Throws
// Error(data) where a turn cannot be found.
std::vector<std::string> turn_texts(const nlohmann::ordered_json& messages, bool prompts, const RenderMessages& render);

// True if `turn`, the message's text, does not show the reasoning that the message brings in <think> </think> before
// its content, or in a field of its own (reasoning_content, reasoning, thinking).
bool drops_reasoning(const nlohmann::ordered_json& message, const std::string& turn);

}  // namespace hexad::text
