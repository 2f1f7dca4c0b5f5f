#include "lib/text/tokenizer/tokenizer_files.hpp"

#include <algorithm>

#include "lib/base/file/folder.hpp"

namespace hexad::text {
namespace {

namespace fs = std::filesystem;

// As transformers' tokenizer classes name them.
constexpr const char* kFiles[] = {"tokenizer.json",
                                  "tokenizer_config.json",
                                  "special_tokens_map.json",
                                  "added_tokens.json",
                                  "chat_template.jinja",
                                  "chat_template.json",
                                  "vocab.json",
                                  "vocab.txt",
                                  "merges.txt",
                                  "tokenizer.model",
                                  "tokenizer.model.v3",
                                  "spiece.model",
                                  "sentencepiece.bpe.model",
                                  "tiktoken.model",
                                  "tekken.json",
                                  "vocab.bpe",
                                  "encoder.json",
                                  "bpe.codes",
                                  "spm.model",
                                  "sentencepiece.model"};

// Those that have a name of the model's in front or a version behind: qwen.tiktoken, tokenizer.model.v7, and the code
// of a tokenizer class that tokenizer_config.json names (auto_map).
bool is_named_otherwise(const std::string& name) {
  return name.ends_with(".tiktoken") || name.starts_with("tokenizer.model.v") ||
         (name.starts_with("tokenization_") && name.ends_with(".py"));
}

// Of `folder`, in order; none if there is no such folder.
template <typename Is>
std::vector<std::string> names_in(const fs::path& folder, Is is) {
  std::error_code absent;
  std::vector<std::string> names;
  if (!fs::is_directory(folder, absent)) return names;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    const fs::path name = entry.path().filename();
    if (is(name) && entry.is_regular_file(absent)) names.push_back(name.string());
  }
  return names;
}

}  // namespace

std::vector<std::string> tokenizer_files(const fs::path& folder) {
  std::vector<std::string> result;
  std::error_code unreadable;
  for (const char* name : kFiles)
    if (fs::exists(folder / name, unreadable)) result.push_back(name);
  for (const std::string& name : names_in(folder, [](const fs::path& each) { return is_named_otherwise(each); }))
    if (std::ranges::find(result, name) == result.end()) result.push_back(name);
  const auto is_template = [](const fs::path& name) { return name.extension() == ".jinja"; };
  for (const std::string& name : names_in(folder / kTemplateFolder, is_template))
    result.push_back((fs::path(kTemplateFolder) / name).string());
  return result;
}

}  // namespace hexad::text
