#include "lib/text/tokenizer/step/post_processor.hpp"

#include "lib/text/tokenizer/model/vocabulary.hpp"

namespace hexad::text {
namespace {

constexpr std::string_view kPostProcessors =
    "ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing, Sequence";

int32_t token_id(const Component& owner, const nlohmann::json& id) {
  if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > Vocabulary::kHighestId) {
    owner.refuse("a token id wants a whole number from 0 to {}", Vocabulary::kHighestId);
  }
  return id.get<int32_t>();
}

// ["[CLS]", 101]
int32_t token_of_pair(const Component& component, const char* key) {
  const nlohmann::json& pair = component.array(key);
  if (pair.size() != 2) component.refuse("\"{}\" wants [\"token\", id]", key);
  return token_id(component, pair[1]);
}

}  // namespace

PostProcessor::PostProcessor() : single_{{0, {}}}, pair_{{0, {}}, {1, {}}} {}

PostProcessor::PostProcessor(const Component& component) : PostProcessor() { read(component); }

bool PostProcessor::read(const Component& component) {
  const std::string type = component.type();
  if (type == "ByteLevel") return false;  // it only moves offsets
  if (type == "TemplateProcessing") return read_template(component), true;
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return read_classifier(component, type == "RobertaProcessing"), true;
  }
  if (type != "Sequence") component.refuse_type(kPostProcessors);
  bool adds = false;
  for (const Component& part : component.children("processors")) {
    if (!read(part)) continue;
    if (adds) part.refuse("a second processor that adds tokens is not supported");
    adds = true;
  }
  return adds;
}

void PostProcessor::read_template(const Component& component) {
  single_ = parts(component, "single");
  pair_ = parts(component, "pair");
  for (const Part& part : single_) {
    if (part.sequence == 1) component.refuse("\"single\" names sequence B; there is only A");
  }
}

PostProcessor::Template PostProcessor::parts(const Component& component, const char* key) {
  constexpr size_t kMostParts = 256, kMostIds = 1 << 16;  // each is copied for every text
  Template result;
  size_t ids = 0;
  for (const Component& piece : component.children(key)) {
    if (piece.has("Sequence")) {
      const std::string id = piece.child("Sequence").text("id");
      if (id != "A" && id != "B") piece.refuse("Sequence \"id\" wants A or B, got \"{}\"", id);
      result.push_back({id == "A" ? 0 : 1, {}});
    } else if (piece.has("SpecialToken")) {
      const Component tokens = component.child("special_tokens");
      const std::string id = piece.child("SpecialToken").text("id");
      if (!tokens.has(id.c_str())) piece.refuse("special token \"{}\" is not in \"special_tokens\"", id);
      const Component token = tokens.child(id.c_str());
      Part part{-1, {}};
      for (const nlohmann::json& each : token.array("ids")) part.ids.push_back(token_id(token, each));
      ids += part.ids.size();
      result.push_back(std::move(part));
    } else {
      piece.refuse("wanted \"Sequence\" or \"SpecialToken\"");
    }
    if (result.size() > kMostParts || ids > kMostIds)
      piece.refuse("\"{}\" has more than {} parts or {} token ids", key, kMostParts, kMostIds);
  }
  return result;
}

// [CLS] A [SEP] B [SEP]; Roberta has two separators in the middle.
void PostProcessor::read_classifier(const Component& component, bool roberta) {
  const Part first{0, {}}, second{1, {}};
  const Part open{-1, {token_of_pair(component, "cls")}}, close{-1, {token_of_pair(component, "sep")}};
  single_ = {open, first, close};
  pair_ = single_;
  if (roberta) pair_.push_back(close);
  pair_.push_back(second);
  pair_.push_back(close);
}

std::vector<int32_t> PostProcessor::fill(const Template& parts, const std::vector<int32_t>* texts[2],
                                         bool special) const {
  std::vector<int32_t> result;
  for (const Part& part : parts) {
    if (part.sequence < 0 && !special) continue;
    const std::vector<int32_t>& ids = part.sequence < 0 ? part.ids : *texts[part.sequence];
    result.insert(result.end(), ids.begin(), ids.end());
  }
  return result;
}

std::vector<int32_t> PostProcessor::single(std::vector<int32_t> text, bool add_special_tokens) const {
  if (single_.size() == 1 && single_[0].sequence == 0) return text;
  const std::vector<int32_t>* texts[2] = {&text, nullptr};
  return fill(single_, texts, add_special_tokens);
}

std::vector<int32_t> PostProcessor::pair(const std::vector<int32_t>& first, const std::vector<int32_t>& second,
                                         bool add_special_tokens) const {
  const std::vector<int32_t>* texts[2] = {&first, &second};
  return fill(pair_, texts, add_special_tokens);
}

}  // namespace hexad::text
