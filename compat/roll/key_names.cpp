#include "compat/roll/key_names.hpp"

#include <algorithm>

#include "lib/base/text.hpp"

namespace hexad::config::roll {
namespace {

struct Word {
  std::string text;
  bool ends = false;  // a key ends here
  std::vector<Word> below = {};
};

void add_key(std::vector<Word>& words, const std::string& key) {
  const size_t dot = key.find('.');
  const std::string first = key.substr(0, dot);
  auto found = std::ranges::find(words, first, &Word::text);
  if (found == words.end()) found = words.insert(words.end(), Word{first});
  if (dot == std::string::npos) {
    found->ends = true;
  } else {
    add_key(found->below, key.substr(dot + 1));
  }
}

std::vector<std::string> texts_of(const std::vector<Word>& words);

std::string in_braces(const std::vector<std::string>& texts) {
  return texts.size() == 1 ? texts[0] : "{" + joined(texts) + "}";
}

// Words with the same text below them share it.
std::vector<std::string> texts_of(const std::vector<Word>& words) {
  struct Shared {
    std::string tail;
    std::vector<std::string> heads;
  };
  std::vector<Shared> groups;
  for (const Word& word : words) {
    if (word.ends) groups.push_back({"", {word.text}});
    if (word.below.empty()) continue;
    const std::string tail = "." + in_braces(texts_of(word.below));
    auto found = std::ranges::find(groups, tail, &Shared::tail);
    if (found == groups.end()) found = groups.insert(groups.end(), Shared{tail, {}});
    found->heads.push_back(word.text);
  }
  std::vector<std::string> result;
  for (const Shared& group : groups) result.push_back(in_braces(group.heads) + group.tail);
  return result;
}

}  // namespace

std::string key_names(const std::vector<std::string>& keys) {
  std::vector<Word> words;
  for (const std::string& key : keys) add_key(words, key);
  return joined(texts_of(words));
}

}  // namespace hexad::config::roll
