#include "lib/text/tokenizer/tokenizer.hpp"

#include <algorithm>
#include <mutex>

#include "lib/base/json.hpp"
#include "lib/text/tokenizer/folder_tokens.hpp"
#include "lib/text/tokenizer/model/model.hpp"
#include "lib/text/tokenizer/step/added_tokens.hpp"
#include "lib/text/tokenizer/step/decoder.hpp"
#include "lib/text/tokenizer/step/post_processor.hpp"
#include "lib/text/tokenizer/step/pre_tokenizer.hpp"
#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

// Memory of one running encode; kept for the next one.
struct Scratch {
  std::string valid;
  std::vector<Section> sections, inner;
  NormalizedText normalized;
  Pieces pieces;
  std::unique_ptr<ModelScratch> model;
};

// Scratches that are not in use. There are as many as calls ever ran at a time.
class ScratchPool {
 public:
  std::unique_ptr<Scratch> take(const Model& model) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
      }
    }
    auto scratch = std::make_unique<Scratch>();
    scratch->model = model.make_scratch();
    return scratch;
  }

  void give_back(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

}  // namespace

struct Tokenizer::Parts {
  std::unique_ptr<Normalizer> normalizer;  // null: none
  std::vector<std::unique_ptr<PreTokenizer>> pre_tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<AddedTokens> added;
  PostProcessor post_processor;
  std::unique_ptr<Decoder> decoder;     // null: tokens are joined by spaces
  std::vector<std::string> byte_texts;  // by id, for a byte-level decoder: decoding is putting these together
  std::vector<bool> special;            // by id
  mutable ScratchPool pool;

  explicit Parts(const Component& document);

  void read_pre_tokenizer(const Component& document);
  std::vector<int32_t> encode(std::string_view text) const;
  void encode_section(std::string_view text, bool at_start, Scratch& scratch, std::vector<int32_t>& ids) const;
  const std::string* token(int32_t id) const;
  int32_t size() const { return std::max(model->vocabulary().size(), added->size()); }
  bool is_special(int32_t id) const { return id >= 0 && id < size() && special[static_cast<size_t>(id)]; }
  std::string decode_bytes(std::span<const int32_t> ids, bool skip_special_tokens) const;
  std::string decode_tokens(std::span<const int32_t> ids, bool skip_special_tokens) const;
};

Tokenizer::Parts::Parts(const Component& document) : model(make_model(document.child("model"))) {
  if (document.has("normalizer")) normalizer = make_normalizer(document.child("normalizer"));
  if (document.has("pre_tokenizer")) read_pre_tokenizer(document);
  if (document.has("post_processor")) post_processor = PostProcessor(document.child("post_processor"));
  if (document.has("decoder")) decoder = make_decoder(document.child("decoder"));
  added = std::make_unique<AddedTokens>(document, model->vocabulary(), normalizer.get());
  const bool bytes = decoder && decoder->is_byte_level();
  special.resize(static_cast<size_t>(size()));
  if (bytes) byte_texts.resize(special.size());
  for (int32_t id = 0; id < size(); ++id) {
    const std::string* text = token(id);
    if (text == nullptr) continue;
    special[static_cast<size_t>(id)] = added->is_special_text(*text);
    if (bytes) byte_texts[static_cast<size_t>(id)] = byte_level_text(*text);
  }
}

void Tokenizer::Parts::read_pre_tokenizer(const Component& document) {
  PreTokenizerChain chain = make_pre_tokenizer(document.child("pre_tokenizer"));
  pre_tokenizer = std::move(chain.steps);
  if (chain.ends_in_byte_chars && !model->take_bytes()) pre_tokenizer.push_back(make_byte_chars_step());
}

std::vector<int32_t> Tokenizer::Parts::encode(std::string_view text) const {
  std::unique_ptr<Scratch> scratch = pool.take(*model);
  text = valid_utf8(text, scratch->valid);
  scratch->normalized.room = most_made(text.size());
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 8);
  scratch->sections.clear();
  added->plain().split(text, scratch->sections);
  for (const Section& section : scratch->sections) {
    if (section.id >= 0)
      ids.push_back(section.id);
    else
      encode_section(text.substr(section.begin, section.end - section.begin), section.begin == 0, *scratch, ids);
  }
  pool.give_back(std::move(scratch));
  return ids;
}

void Tokenizer::Parts::encode_section(std::string_view text, bool at_start, Scratch& scratch,
                                      std::vector<int32_t>& ids) const {
  NormalizedText& normalized = scratch.normalized;
  normalized.text = text;
  normalized.from_start = at_start ? char_size(text[0]) : 0;
  if (normalizer) {
    normalizer->apply(normalized);
    normalized.require_room(normalized.text.size(), "normalizer");
    normalized.room -= normalized.text.size();
  }
  scratch.inner.clear();
  added->normalized().split(normalized.text, scratch.inner);
  for (const Section& section : scratch.inner) {
    if (section.id >= 0) {
      ids.push_back(section.id);
      continue;
    }
    const size_t from_start = std::max(std::min(normalized.from_start, section.end), section.begin) - section.begin;
    scratch.pieces.reset(normalized.text.substr(section.begin, section.end - section.begin), from_start);
    for (const auto& step : pre_tokenizer) step->apply(scratch.pieces);
    for (const Piece& piece : scratch.pieces.list) model->encode(scratch.pieces.view(piece), *scratch.model, ids);
  }
}

const std::string* Tokenizer::Parts::token(int32_t id) const {
  if (const std::string* text = added->decoder_text(id)) return text;
  return model->vocabulary().token(id);
}

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::filesystem::path& path) {
  const bool folder = std::filesystem::is_directory(path);
  const std::filesystem::path file = folder ? path / "tokenizer.json" : path;
  if (!std::filesystem::exists(file)) {
    fail(ErrorKind::data,
         "{}: no such file; a model folder needs the tokenizer.json of Hugging Face tokenizers (other "
         "formats, such as SentencePiece's tokenizer.model, must be converted to it first)",
         file.string());
  }
  nlohmann::json document = read_json<nlohmann::json>(file);
  if (!folder) return from_json(document, file.string());
  const std::vector<FolderToken> unknown = add_folder_tokens(path, document);
  auto tokenizer = from_json(document, file.string());
  for (const FolderToken& added : unknown) {
    const auto id = tokenizer->token_to_id(added.token.content);
    if (!id || *id == *added.id) continue;
    fail(
        ErrorKind::data,
        "{}: \"{}\" has the id {}, but {}, which lacks it, would give it {}. The files are of different tokenizers, or "
        "of one with a gap in its ids: take tokenizer.json from where the model was saved last",
        added.where, added.token.content, *added.id, file.string(), *id);
  }
  return tokenizer;
}

std::shared_ptr<const Tokenizer> Tokenizer::from_json(const nlohmann::json& document, const std::string& origin) {
  const Component root(document, origin);
  const std::string version = root.text_or("version", "1.0");
  if (version != "1.0") root.refuse("version \"{}\" is not supported; supported: 1.0", version);
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::make_unique<Parts>(root)));
}

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  return parts_->post_processor.single(parts_->encode(text), add_special_tokens);
}

std::vector<int32_t> Tokenizer::encode_pair(std::string_view text, std::string_view pair,
                                            bool add_special_tokens) const {
  return parts_->post_processor.pair(parts_->encode(text), parts_->encode(pair), add_special_tokens);
}

std::string Tokenizer::Parts::decode_bytes(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::string bytes, buffer;
  for (const int32_t id : ids) {
    if (id < 0 || id >= size() || (skip_special_tokens && is_special(id))) continue;
    bytes += byte_texts[static_cast<size_t>(id)];
  }
  return valid_utf8(bytes, buffer).data() == bytes.data() ? bytes : buffer;
}

std::string Tokenizer::Parts::decode_tokens(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  size_t bytes = 0;
  for (const int32_t id : ids) {
    const std::string* text = token(id);
    if (text && !(skip_special_tokens && is_special(id))) bytes += tokens.emplace_back(*text).size();
  }
  if (decoder) decoder->apply(tokens, most_made(bytes));
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) text.append(i == 0 || decoder ? "" : " ").append(tokens[i]);
  return text;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  return parts_->byte_texts.empty() ? parts_->decode_tokens(ids, skip_special_tokens)
                                    : parts_->decode_bytes(ids, skip_special_tokens);
}

int32_t Tokenizer::vocab_size() const { return parts_->size(); }

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  const auto added = parts_->added->find(token);
  return added ? added : parts_->model->vocabulary().find(token);
}

std::string Tokenizer::id_to_token(int32_t id) const {
  const std::string* token = parts_->token(id);
  return token ? *token : "";
}

bool Tokenizer::is_special(int32_t id) const { return parts_->is_special(id); }

}  // namespace hexad::text
