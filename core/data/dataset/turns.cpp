#include "core/data/dataset/turns.hpp"

#include <optional>

#include "lib/base/error.hpp"

namespace hexad::data {
namespace {

using Json = nlohmann::ordered_json;

class TurnFinder {
 public:
  TurnFinder(const Json& messages, const RenderOptions& options, const TextTools& tools)
      : messages_(messages), options_(options), tools_(tools), whole_(render(messages, is_asked(messages.back()))) {
    while (whole_.find(mark_) != whole_.npos) mark_ += mark_;
  }

  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    size_t begin = 0;
    for (size_t i = 0; i < messages_.size(); ++i) {
      const size_t end = i + 1 == messages_.size() ? whole_.size() : end_of(i);
      if (end < begin) refuse(i);
      texts.push_back(whole_.substr(begin, end - begin));
      begin = end;
    }
    return texts;
  }

 private:
  // The generation prompt is to follow it.
  bool is_asked(const Json& message) const {
    return options_.add_generation_prompt && (message.at("role") == "user" || message.at("role") == "tool");
  }

  std::string render(const Json& messages, bool prompt) const {
    return tools_.render(messages, {prompt, options_.tools});
  }

  bool whole_has(std::string_view text, size_t at) const {
    return std::string_view(whole_).substr(at).starts_with(text);
  }

  // Where message i ends in the whole text: behind what the template writes for the messages up to it, if the whole
  // text begins with that.
  size_t end_of(size_t i) const {
    const Json until(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    const bool asked = is_asked(messages_[i]);
    const std::string alone = render(until, asked);
    if (whole_has(alone, 0)) return alone.size();
    const std::string bare = asked ? render(until, false) : alone;
    const size_t end = whole_has(bare, 0) ? bare.size() : end_among_others(i, until, bare);
    if (!alone.starts_with(bare)) return end;
    const std::string_view prompt = std::string_view(alone).substr(bare.size());
    return whole_has(prompt, end) ? end + prompt.size() : end;
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
    const std::string marked = render(messages, prompt);
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
  const RenderOptions& options_;
  const TextTools& tools_;
  const std::string whole_;
  std::string mark_ = "7305";  // digits: no template changes their case, or strips them
};

}  // namespace

std::vector<std::string> turn_texts(const Json& messages, const RenderOptions& options, const TextTools& tools) {
  return TurnFinder(messages, options, tools).texts();
}

}  // namespace hexad::data
