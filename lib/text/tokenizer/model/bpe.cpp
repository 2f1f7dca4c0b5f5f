#include "lib/text/tokenizer/model/bpe.hpp"

#include "lib/text/tokenizer/step/byte_level.hpp"
#include "lib/text/unicode.hpp"

namespace hexad::text {

struct Bpe::Scratch final : ModelScratch {
  Merger merger;
  WordCache cache;
};

std::unique_ptr<ModelScratch> Bpe::make_scratch() const { return std::make_unique<Scratch>(); }

std::optional<int32_t> Bpe::whole_word(std::string_view word) const {
  if (!bytes_) return vocabulary_.find(word);
  const auto found = words_as_bytes_.find(std::string(word));
  if (found == words_as_bytes_.end()) return std::nullopt;
  return found->second;
}

void Bpe::encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids) const {
  auto& mine = static_cast<Scratch&>(scratch);
  if (boundary_.empty()) return encode_word(piece, mine, ids);
  // Words "▁like▁▁this" are cut where a boundary character follows another character.
  size_t begin = 0;
  while (begin < piece.size()) {
    size_t end = begin;
    while (piece.substr(end).starts_with(boundary_)) end += boundary_.size();
    end = std::min(piece.find(boundary_, end), piece.size());
    encode_word(piece.substr(begin, end - begin), mine, ids);
    begin = end;
  }
}

void Bpe::encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  const bool cached = word.size() <= WordCache::kLongestWord;
  const uint64_t hash = cached ? WordCache::hash(word) : 0;
  if (cached) {
    const auto known = scratch.cache.find(word, hash);
    if (!known.empty()) return ids.insert(ids.end(), known.begin(), known.end()), void();
  }
  std::vector<int32_t>& tokens = scratch.merger.tokens;
  tokens.clear();
  const auto whole = ignore_merges_ ? whole_word(word) : std::nullopt;
  if (whole) {
    tokens.push_back(*whole);
  } else if (bytes_) {
    for (const char byte : word) tokens.push_back((*bytes_)[static_cast<uint8_t>(byte)]);
    scratch.merger.merge(merges_, false);
  } else {
    const bool unknown = split_characters(word, tokens);
    scratch.merger.merge(merges_, unknown);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  if (cached && !tokens.empty()) scratch.cache.insert(word, hash, tokens);
}

bool Bpe::split_characters(std::string_view word, std::vector<int32_t>& tokens) const {
  const char* end = word.data() + word.size();
  bool unknown = false, pending = false;
  std::string spelled;
  for (const char* at = word.data(); at < end;) {
    const char* begin = at;
    const char32_t c = next_char(at);
    std::string_view character(begin, static_cast<size_t>(at - begin));
    const bool decorated = (begin != word.data() && !prefix_.empty()) || (at == end && !suffix_.empty());
    std::optional<int32_t> id;
    if (decorated) {
      spelled = (begin != word.data() ? prefix_ : "") + std::string(character) + (at == end ? suffix_ : "");
      character = spelled;
      id = vocabulary_.find(character);
    } else if (const int32_t* found = characters_.find(c)) {
      id = *found;
    }
    if (id) {
      if (pending) tokens.push_back(*unknown_), pending = false;
      tokens.push_back(*id);
    } else if (!(byte_fallback_ && add_bytes_of(character, tokens)) && unknown_) {
      if (pending && !fuse_unknown_) tokens.push_back(*unknown_);
      unknown = pending = true;
    }
  }
  if (pending) tokens.push_back(*unknown_);
  return unknown;
}

bool Bpe::add_bytes_of(std::string_view character, std::vector<int32_t>& tokens) const {
  for (const char byte : character) {
    if (fallback_[static_cast<uint8_t>(byte)] < 0) return false;
  }
  for (const char byte : character) tokens.push_back(fallback_[static_cast<uint8_t>(byte)]);
  return true;
}

bool Bpe::take_bytes() {
  if (!prefix_.empty() || !suffix_.empty()) return false;
  std::array<int32_t, 256> bytes;
  for (int byte = 0; byte < 256; ++byte) {
    const auto id = vocabulary_.find(byte_char(static_cast<uint8_t>(byte)));
    if (!id) return false;
    bytes[static_cast<size_t>(byte)] = *id;
  }
  bytes_ = bytes;
  boundary_.clear();
  if (!ignore_merges_) return true;
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    const std::string* token = vocabulary_.token(id);
    if (token == nullptr) continue;
    if (auto word = bytes_of_token(*token)) words_as_bytes_[*word] = *vocabulary_.find(*token);
  }
  return true;
}

}  // namespace hexad::text
