#include "lib/text/tokenizer/model/unigram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

// What an unknown character costs below the worst token (SentencePiece).
constexpr double kUnknownPenalty = 10.0;

// The score as `tokenizers` has it. Its JSON reader divides the digits by a power of ten, which may differ from the
// nearest double in the last bit, and that bit decides between ways of equal cost. The digits of the file are those of
// the shortest text of the double, as writers of such files print it.
double score_as_read_by_serde(double nearest) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, std::abs(nearest), std::chars_format::scientific).ptr;
  const char* mark = std::find(text, end, 'e');
  uint64_t digits = 0;
  int exponent = 0;
  for (const char* at = text; at < mark; ++at) {
    if (*at == '.')
      exponent -= static_cast<int>(mark - at) - 1;
    else
      digits = digits * 10 + static_cast<uint64_t>(*at - '0');
  }
  int written = 0;
  std::from_chars(mark + (mark[1] == '+' ? 2 : 1), end, written);
  exponent += written;
  double power = 1.0;
  const std::string power_text = fmt::format("1e{}", std::min(std::abs(exponent), 308));
  std::from_chars(power_text.data(), power_text.data() + power_text.size(), power);
  const double value = exponent < 0 ? static_cast<double>(digits) / power : static_cast<double>(digits) * power;
  return std::copysign(value, nearest);
}

Vocabulary read_vocabulary(const Component& component, std::vector<double>& scores) {
  Vocabulary vocabulary;
  const nlohmann::json& list = component.array("vocab");
  if (list.size() > static_cast<size_t>(Vocabulary::kHighestId)) component.refuse("\"vocab\" is too long");
  for (const nlohmann::json& entry : list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      component.refuse("vocab[{}] wants [\"token\", score]", scores.size());
    }
    vocabulary.add(entry[0].get<std::string>(), static_cast<int32_t>(scores.size()));
    scores.push_back(score_as_read_by_serde(entry[1].get<double>()));
  }
  return vocabulary;
}

}  // namespace

struct Unigram::Scratch final : ModelScratch {
  // Best way to reach a byte offset.
  struct Node {
    double score;
    size_t from;
    int32_t id;
    bool reached;
  };
  std::vector<Node> nodes;
  std::vector<size_t> path;  // offsets, last first
  WordCache cache;
};

Unigram::Unigram(const Component& component) : Unigram(component, {}) {}

Unigram::Unigram(const Component& component, std::vector<double> scores)
    : Model(read_vocabulary(component, scores)),
      scores_(std::move(scores)),
      byte_fallback_(component.boolean_or("byte_fallback", false)) {
  if (component.has("unk_id")) {
    unknown_ = static_cast<int32_t>(component.integer("unk_id", 0, static_cast<int64_t>(scores_.size()) - 1));
  }
  worst_ = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < scores_.size(); ++id) {
    const std::string& token = *vocabulary_.token(static_cast<int32_t>(id));
    if (!token.empty()) trie_.insert(token, *vocabulary_.find(token));
    if (scores_[id] < worst_) worst_ = scores_[id];
  }
  for (int byte = 0; byte < 256; ++byte) {
    fallback_[static_cast<size_t>(byte)] = vocabulary_.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  where_ = component.where();
}

std::unique_ptr<ModelScratch> Unigram::make_scratch() const { return std::make_unique<Scratch>(); }

void Unigram::encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids) const {
  auto& mine = static_cast<Scratch&>(scratch);
  const bool cached = piece.size() <= WordCache::kLongestWord;
  const uint64_t hash = cached ? WordCache::hash(piece) : 0;
  if (cached) {
    const auto known = mine.cache.find(piece, hash);
    if (!known.empty()) return ids.insert(ids.end(), known.begin(), known.end()), void();
  }
  const size_t before = ids.size();
  find_best_path(piece, mine);
  emit_path(piece, mine, ids);
  if (cached && ids.size() > before) mine.cache.insert(piece, hash, std::span(ids).subspan(before));
}

void Unigram::find_best_path(std::string_view piece, Scratch& scratch) const {
  auto& nodes = scratch.nodes;
  nodes.assign(piece.size() + 1, {0.0, 0, 0, false});
  for (size_t at = 0; at < piece.size();) {
    const double here = nodes[at].score;
    const size_t step = char_size(piece[at]);
    bool single = false;
    const auto offer = [&](size_t size, int32_t id, double score) {
      Scratch::Node& node = nodes[at + size];
      if (!node.reached || score > node.score) node = {score, at, id, true};
    };
    trie_.prefixes(piece.substr(at), [&](size_t size, int32_t id) {
      offer(size, id, scores_[static_cast<size_t>(id)] + here);
      single = single || size == step;
    });
    if (!single) {
      if (!unknown_)
        fail(ErrorKind::data, "{}: the text has a character that no token has, and \"unk_id\" is null", where_);
      offer(step, *unknown_, worst_ - kUnknownPenalty + here);
    }
    at += step;
  }
}

void Unigram::emit_path(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  auto& path = scratch.path;
  path.clear();
  for (size_t at = piece.size(); at > 0; at = scratch.nodes[at].from) path.push_back(at);
  size_t from = 0;
  while (!path.empty()) {
    size_t to = path.back();
    path.pop_back();
    // Neighbouring unknown characters are one token.
    while (unknown_ && scratch.nodes[to].id == *unknown_ && !path.empty() &&
           scratch.nodes[path.back()].id == *unknown_) {
      to = path.back();
      path.pop_back();
    }
    emit_token(piece.substr(from, to - from), ids);
    from = to;
  }
}

void Unigram::emit_token(std::string_view text, std::vector<int32_t>& ids) const {
  if (const auto id = vocabulary_.find(text)) return ids.push_back(*id);
  const bool spelled = byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char byte) {
                         return fallback_[static_cast<uint8_t>(byte)] >= 0;
                       });
  if (!spelled) return ids.push_back(*unknown_);
  for (const char byte : text) ids.push_back(fallback_[static_cast<uint8_t>(byte)]);
}

}  // namespace hexad::text
