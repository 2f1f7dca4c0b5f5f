// The tokenizer and the chat templates of a model as metadata of a GGUF file: the way back from gguf_tokenizer.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/tensorfile/gguf_writer.hpp"

namespace hexad::convert {

// tokenizer.ggml.token_type.
inline constexpr int32_t kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5;
// What stands in the place of a token for a row of the model that no token has.
inline std::string padding_token(size_t id) { return "[PAD" + std::to_string(id) + "]"; }

inline constexpr const char* kPre = "tokenizer.ggml.pre";
inline constexpr const char *kChatTemplate = "tokenizer.chat_template", *kChatTemplates = "tokenizer.chat_templates";
// Of a turn and of a message: llama.cpp stops there as it does at the end of text.
inline constexpr const char* kFurtherEnds[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};

struct GgufText {
  tensorfile::GgufEntries entries;
  std::vector<std::string> notes;  // what the file cannot say, and llama.cpp will do otherwise
};

// Of the tokenizer in `folder`, for a model with so many rows of embeddings. `configs`: generation_config.json and
// config.json, whose token ids count in this order behind what tokenizer_config.json says. Fails, naming file and part,
// on a tokenizer that llama.cpp has not: another model than byte-level BPE, a normalizer but NFC, a way to split text
// without a name there, other tokens around a text than its beginning and end.
GgufText gguf_text(const std::filesystem::path& folder, int64_t rows,
                   const std::vector<nlohmann::ordered_json>& configs);

}  // namespace hexad::convert
