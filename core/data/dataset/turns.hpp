// The turns of a conversation in the text that the chat template writes for all of it.
#pragma once
#include <string>
#include <vector>

#include "core/data/dataset/processor.hpp"

namespace hexad::data {

// The text of each message; together they are the text of the whole conversation. A template may write a turn otherwise
// where others follow, without its reasoning or what closes the last one: then the turn is what stands there of it.
// With options.add_generation_prompt the generation prompt, where the template writes it before an answer, belongs to
// the user's or tool's message before that. Throws Error(data) where a turn cannot be found.
std::vector<std::string> turn_texts(const nlohmann::ordered_json& messages, const RenderOptions& options,
                                    const TextTools& tools);

}  // namespace hexad::data
