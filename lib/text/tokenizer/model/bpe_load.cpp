#include <fmt/format.h>

#include "lib/text/tokenizer/model/bpe.hpp"
#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

size_t merge_count(const Component& component) { return component.array("merges").size(); }

struct Pair {
  std::string left, right;
};

// "left right" or ["left", "right"].
Pair read_pair(const Component& component, const nlohmann::json& merge, size_t index) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  }
  component.refuse("merges[{}] wants \"left right\" or [\"left\", \"right\"]", index);
}

}  // namespace

Bpe::Bpe(const Component& component)
    : Model(Vocabulary::from_object(component, "vocab")),
      merges_(merge_count(component)),
      prefix_(component.text_or("continuing_subword_prefix", "")),
      suffix_(component.text_or("end_of_word_suffix", "")),
      fuse_unknown_(component.boolean_or("fuse_unk", false)),
      byte_fallback_(component.boolean_or("byte_fallback", false)),
      ignore_merges_(component.boolean_or("ignore_merges", false)) {
  const auto dropout = component.value().find("dropout");
  if (component.has("dropout") && !(dropout->is_number() && dropout->get<double>() == 0.0)) {
    component.refuse("\"dropout\" is for training a tokenizer and is not available; set it to null");
  }
  if (component.has("unk_token")) {
    unknown_ = vocabulary_.find(component.text("unk_token"));
    if (!unknown_) component.refuse("\"unk_token\" \"{}\" is not in \"vocab\"", component.text("unk_token"));
  }
  for (int byte = 0; byte < 256; ++byte) {
    fallback_[static_cast<size_t>(byte)] = vocabulary_.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    const std::string* token = vocabulary_.token(id);
    if (token == nullptr || token->empty() || char_size((*token)[0]) != token->size()) continue;
    const char* at = token->data();
    characters_[next_char(at)] = *vocabulary_.find(*token);
  }
  read_merges(component);
}

void Bpe::read_merges(const Component& component) {
  const std::string mark = "\xE2\x96\x81";  // ▁
  bool crosses = !prefix_.empty() || !suffix_.empty() || ignore_merges_ || !vocabulary_.find(mark);
  uint32_t rank = 0;
  size_t index = 0;
  for (const nlohmann::json& merge : component.array("merges")) {
    ++index;
    if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version")) continue;
    const auto [left, right] = read_pair(component, merge, index - 1);
    if (right.size() < prefix_.size())
      component.refuse("merges[{}]: \"{}\" lacks the subword prefix", index - 1, right);
    const std::string both = left + right.substr(prefix_.size());
    const auto left_id = vocabulary_.find(left), right_id = vocabulary_.find(right), id = vocabulary_.find(both);
    if (!left_id || !right_id || !id) {
      component.refuse("merges[{}]: \"{}\" is not in \"vocab\"", index - 1, !left_id ? left : !right_id ? right : both);
    }
    merges_.set(*left_id, *right_id, {rank++, *id});
    crosses = crosses || (right.starts_with(mark) && !left.ends_with(mark));
  }
  if (!crosses) boundary_ = mark;
}

}  // namespace hexad::text
