// What the files beside a tokenizer.json say of its tokens, as transformers 5 reads them: tokenizer_config.json, and
// the older special_tokens_map.json and added_tokens.json, which count where it has no "added_tokens_decoder".
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/text/tokenizer/step/added_tokens.hpp"

namespace hexad::text {

// tokenizer_config.json of `folder`, the roles of special_tokens_map.json put over its own; an empty object where there
// is neither. Throws Error(data) that names the file and the key on malformed content.
nlohmann::json read_folder_config(const std::filesystem::path& folder);

// The special tokens of a folder's config by the names that chat templates use: bos_token, eos_token, unk_token ...,
// and those of its own that "extra_special_tokens" names. `origin` names the config in errors.
std::map<std::string, std::string> special_tokens(const nlohmann::json& config, const std::string& origin);

// A token that a file beside tokenizer.json adds, or gives other flags.
struct FolderToken {
  AddedToken token;
  std::optional<int64_t> id;  // what the file says
  std::string where;          // the file and the key
};

// Those tokens, in the order in which transformers adds them to `tokenizer`, the tokenizer.json of `folder`.
std::vector<FolderToken> folder_tokens(const std::filesystem::path& folder, const nlohmann::json& tokenizer);

// Adds them to the document. Returns those whose ids are to be looked at: tokens that it did not know.
std::vector<FolderToken> add_folder_tokens(const std::filesystem::path& folder, nlohmann::json& tokenizer);

}  // namespace hexad::text
