// The work of `hexad tokenize MODEL_DIR --input FILE.jsonl [--decode]`, line by line.
#pragma once
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>

#include <nlohmann/json.hpp>

namespace hexad::text {

// Renders a line {"messages": [...], "add_generation_prompt": true, ...} with the model's chat template. `where`:
// "FILE:LINE", with which its errors begin.
using ChatRenderer = std::function<std::string(const nlohmann::ordered_json& line, const std::string& where)>;

// Reads `input`, one JSON object a line (blank lines are skipped), and writes one object a line to `out`:
//   {"text": T}                  -> {"token_ids": [...]}, with special tokens unless "add_special_tokens": false
//   {"messages": [...], ...}     -> {"token_ids": [...], "text": rendered}, without added special tokens
//   decode: {"token_ids": [...]} -> {"text": T}, special tokens kept unless "skip_special_tokens": true
// Returns the number of lines written. Throws Error(data) that starts with "FILE:LINE:" at the first malformed line;
// the lines before it have been written.
int tokenize_file(const std::filesystem::path& model_dir, const std::filesystem::path& input, std::ostream& out,
                  bool decode, const ChatRenderer& render);

}  // namespace hexad::text
