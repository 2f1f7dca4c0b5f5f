// How the pre-tokenizers that a GGUF file names (tokenizer.ggml.pre) split text, as llama.cpp does it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hexad::convert {

struct GgufPreTokenizer {
  std::vector<const char*> names;
  std::vector<const char*> splits;  // regexes, one after the other; what none matches stays whole
  bool ignore_merges = false;       // a piece that is a token is not taken apart
  bool add_bos = false;             // where the file does not say whether text begins with bos
  bool nfc = false;                 // the published tokenizer composes characters first
};

// Null for a name that is not known.
const GgufPreTokenizer* find_pre_tokenizer(const std::string& name);

std::vector<std::string> pre_tokenizer_names();

// The first name of those that split text as a tokenizer.json with these parts does; nothing where none does.
std::optional<std::string> pre_tokenizer_name(const nlohmann::json& pre_tokenizer, bool ignore_merges, bool nfc);

// tokenizer.json's "pre_tokenizer".
nlohmann::ordered_json pre_tokenizer_json(const GgufPreTokenizer& pre);

}  // namespace hexad::convert
