#include "lib/text/tokenizer/step/added_tokens.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

// Start of the last character before `at`.
size_t character_before(std::string_view text, size_t at) {
  do --at;
  while ((static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  return at;
}

char32_t character_at(std::string_view text, size_t at) {
  const char* pointer = text.data() + at;
  return next_char(pointer);
}

bool word_before(std::string_view text, size_t at) {
  return at > 0 && is_word_char(character_at(text, character_before(text, at)));
}

bool word_after(std::string_view text, size_t at) { return at < text.size() && is_word_char(character_at(text, at)); }

// Not further back than `floor`.
size_t skip_space_back(std::string_view text, size_t at, size_t floor) {
  while (at > floor) {
    const size_t before = character_before(text, at);
    if (!(char_classes()[character_at(text, before)] & kSpace)) break;
    at = before;
  }
  return at;
}

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && char_classes()[character_at(text, at)] & kSpace) at += char_size(text[at]);
  return at;
}

}  // namespace

void AddedTokenMatcher::add(std::string_view pattern, int32_t id, const AddedToken& token) {
  if (pattern.empty()) return;
  bool known = false;
  trie_.prefixes(pattern, [&](size_t size, int32_t) { known = known || size == pattern.size(); });
  if (known) return;
  trie_.insert(pattern, static_cast<int32_t>(rules_.size()));
  rules_.push_back({id, token.single_word, token.lstrip, token.rstrip});
  bool& starts = starts_[static_cast<uint8_t>(pattern[0])];
  if (!starts) first_bytes_ += pattern[0];
  starts = true;
}

size_t AddedTokenMatcher::next_candidate(std::string_view text, size_t from) const {
  if (first_bytes_.empty()) return text.size();
  if (first_bytes_.size() == 1) return std::min(text.find(first_bytes_[0], from), text.size());
  while (from < text.size() && !starts_[static_cast<uint8_t>(text[from])]) ++from;
  return from;
}

void AddedTokenMatcher::split(std::string_view text, std::vector<Section>& sections) const {
  size_t done = 0;       // the end of the last section
  size_t space_end = 0;  // where the space that rstrip looked at last ends; no space is looked at twice
  for (size_t at = next_candidate(text, 0); at < text.size(); at = next_candidate(text, at)) {
    size_t size = 0;
    int32_t index = 0;
    trie_.prefixes(text.substr(at), [&](size_t length, int32_t rule) { size = length, index = rule; });
    if (size == 0) {
      ++at;
      continue;
    }
    const Rule& rule = rules_[static_cast<size_t>(index)];
    size_t begin = at, end = at + size;
    at = end;
    if (rule.single_word && (word_before(text, begin) || word_after(text, end))) continue;
    if (rule.lstrip) begin = std::max(skip_space_back(text, begin, done), done);
    if (rule.rstrip) end = end <= space_end ? space_end : (space_end = skip_space(text, end));
    if (done < begin) sections.push_back({done, begin, -1});
    // Not so when rstrip of the token before took all of it in.
    if (begin < end) sections.push_back({begin, end, rule.id});
    done = end;
  }
  if (done < text.size()) sections.push_back({done, text.size(), -1});
}

AddedTokens::AddedTokens(const Component& document, const Vocabulary& model, const Normalizer* normalizer) {
  if (!document.has("added_tokens")) return;
  const auto in_model = static_cast<int32_t>(model.count());
  int32_t next = in_model;
  for (const Component& entry : document.children("added_tokens")) {
    AddedToken token{entry.text("content"),
                     entry.boolean_or("single_word", false),
                     entry.boolean_or("lstrip", false),
                     entry.boolean_or("rstrip", false),
                     entry.boolean_or("normalized", true),
                     entry.boolean_or("special", false)};
    if (token.content.empty()) continue;
    const auto known = find(token.content);
    const auto of_model = known ? known : model.find(token.content);
    add(token, of_model ? *of_model : next++, normalizer);
  }
  const std::map<int32_t, AddedToken> in_order(tokens_.begin(), tokens_.end());
  for (const auto& [id, token] : in_order) {
    if (token.normalized)
      normalized_.add(*decoder_text(id), id, token);
    else
      plain_.add(token.content, id, token);
  }
}

void AddedTokens::add(const AddedToken& token, int32_t id, const Normalizer* normalizer) {
  decoder_texts_.erase(id);  // of the same token with other flags
  if (token.normalized && normalizer) {
    NormalizedText text;
    text.text = token.content;
    normalizer->apply(text);
    if (text.text != token.content) decoder_texts_[id] = std::string(text.text);
  }
  ids_[token.content] = id;
  if (token.special) special_[token.content] = true;
  tokens_[id] = token;
  size_ = std::max(size_, id + 1);
}

std::optional<int32_t> AddedTokens::find(std::string_view content) const {
  const auto found = ids_.find(std::string(content));
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* AddedTokens::decoder_text(int32_t id) const {
  const auto normalized = decoder_texts_.find(id);
  if (normalized != decoder_texts_.end()) return &normalized->second;
  const auto token = tokens_.find(id);
  return token != tokens_.end() ? &token->second.content : nullptr;
}

bool AddedTokens::is_special_text(std::string_view text) const { return special_.contains(std::string(text)); }

}  // namespace hexad::text
