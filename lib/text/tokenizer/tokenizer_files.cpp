#include "lib/text/tokenizer/tokenizer_files.hpp"

#include <algorithm>

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
                                  "tekken.json"};

}  // namespace

std::vector<std::string> tokenizer_files(const fs::path& folder) {
  std::vector<std::string> result;
  std::error_code unreadable;
  for (const char* name : kFiles)
    if (fs::exists(folder / name, unreadable)) result.push_back(name);
  std::vector<std::string> templates;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / kTemplateFolder, unreadable)) {
    const fs::path name = entry.path().filename();
    if (name.extension() == ".jinja" && entry.is_regular_file(unreadable))
      templates.push_back((fs::path(kTemplateFolder) / name).string());
  }
  std::ranges::sort(templates);
  result.insert(result.end(), templates.begin(), templates.end());
  return result;
}

}  // namespace hexad::text
