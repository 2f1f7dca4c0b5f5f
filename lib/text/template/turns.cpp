#include "lib/text/template/turns.hpp"

#include <optional>

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::text {
namespace {

using Json = nlohmann::ordered_json;

class TurnFinder {
 public:
  TurnFinder(const Json& messages, bool prompts, const RenderMessages& render)
      : messages_(messages), prompts_(prompts), render_(render), whole_(render(messages, is_asked(messages.back()))) {
    while (whole_.find(mark_) != whole_.npos) mark_ += mark_;
  }

  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    size_t begin = 0;
    for (size_t i = 0; i < messages_.size(); ++i) {
      const size_t end = i + 1 == messages_.size() ? whole_.size() : end_of(i, begin);
      if (end < begin) refuse(i);
      texts.push_back(whole_.substr(begin, end - begin));
      begin = end;
    }
    return texts;
  }

 private:
  // The generation prompt is to follow it.
  bool is_asked(const Json& message) const {
    return prompts_ && (message.at("role") == "user" || message.at("role") == "tool");
  }

  bool whole_has(std::string_view text, size_t at) const {
    return std::string_view(whole_).substr(at).starts_with(text);
  }

  // Where message i ends in the whole text: behind what the template writes for the messages up to it, if the whole
  // text begins with that. `begin`: where it begins.
  size_t end_of(size_t i, size_t begin) const {
    const Json until(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    const bool asked = is_asked(messages_[i]);
    std::string alone;
    try {
      alone = render_(until, asked);
    } catch (const Error&) {
      if (has_no_answer_beside(i)) return begin;
      throw;
    }
    if (whole_has(alone, 0)) return alone.size();
    const std::string bare = asked ? render_(until, false) : alone;
    const size_t end = whole_has(bare, 0) ? bare.size() : end_among_others(i, until, bare);
    if (!alone.starts_with(bare)) return end;
    const std::string_view prompt = std::string_view(alone).substr(bare.size());
    return whole_has(prompt, end) ? end + prompt.size() : end;
  }

  // Neither message i nor the next one is an answer, or the last message: where one ends and the other begins decides
  // nothing.
  bool has_no_answer_beside(size_t i) const {
    return i + 2 < messages_.size() && messages_[i].at("role") != "assistant" &&
           messages_[i + 1].at("role") != "assistant";
  }

  // The same of a message that the template writes otherwise where others follow. `alone`: the text of the messages up
  // to it, which ends with what closes the turn.
  size_t end_among_others(size_t i, const Json& until, const std::string& alone) const {
    const std::optional<size_t> said = end_of_content(messages_, i, whole_, is_asked(messages_.back())),
                                said_alone = end_of_content(until, i, alone, false);
    if (!said || !said_alone) refuse(i);
    const std::string_view close = std::string_view(alone).substr(*said_alone);
    if (whole_has(close, *said)) return *said + close.size();
    // Calls of tools stand behind the content: without what closes them nothing tells where they end.
    if (messages_[i].contains("tool_calls") && !messages_[i].at("tool_calls").empty()) refuse(i);
    return *said;
  }

  // Where the content of message i ends in `text`, which the template has written for `messages`; nothing where it does
  // not show it.
  std::optional<size_t> end_of_content(Json messages, size_t i, const std::string& text, bool prompt) const {
    Json& content = messages[i]["content"];
    if (content.is_array()) {
      content.push_back({{"type", "text"}, {"text", mark_}});
    } else {
      content = (content.is_string() ? content.get<std::string>() : "") + mark_;
    }
    const std::string marked = render_(messages, prompt);
    const size_t at = marked.rfind(mark_);
    if (at == marked.npos) return std::nullopt;
    const std::string_view behind = std::string_view(marked).substr(at + mark_.size());
    return text.ends_with(behind) ? std::optional(text.size() - behind.size()) : std::nullopt;
  }

  [[noreturn]] void refuse(size_t i) const {
    fail(ErrorKind::data,
         "messages[{}]: the chat template writes this turn otherwise where others follow, and it cannot be found in "
         "the text of the whole conversation, so that nothing tells which tokens are whose. Take a template that shows "
         "every turn (policy.tokenizer.chat_template), or leave the row out",
         i);
  }

  const Json& messages_;
  const bool prompts_;
  const RenderMessages& render_;
  const std::string whole_;
  std::string mark_ = "7305";  // digits: no template changes their case, or strips them
};

}  // namespace

std::vector<std::string> turn_texts(const Json& messages, bool prompts, const RenderMessages& render) {
  return TurnFinder(messages, prompts, render).texts();
}

bool drops_reasoning(const Json& message, const std::string& turn) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  const auto hides = [&](std::string_view reasoning) {
    return !trimmed(reasoning).empty() && turn.find(trimmed(reasoning)) == turn.npos;
  };
  for (const char* field : {"reasoning_content", "reasoning", "thinking"}) {
    const auto found = message.find(field);
    if (found != message.end() && found->is_string() && hides(found->get_ref<const std::string&>())) return true;
  }
  const auto content = message.find("content");
  if (content == message.end() || !content->is_string()) return false;
  const std::string_view text = content->get_ref<const std::string&>();
  const size_t close = text.find(kClose), open = text.substr(0, close).find(kOpen);
  const size_t begin = open == text.npos ? 0 : open + kOpen.size();
  return close != text.npos && hides(text.substr(begin, close - begin));
}

}  // namespace hexad::text
