#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/json_field.hpp"
#include "lib/base/utf8.hpp"
#include "lib/text/conversation/message.hpp"
#include "lib/text/conversation/row_field.hpp"
#include "lib/text/conversation/row_format.hpp"

namespace hexad::text {
namespace {

using Json = nlohmann::ordered_json;

void append(Json& messages, const Json& more) { messages.insert(messages.end(), more.begin(), more.end()); }

// The messages that both conversations begin with; each keeps one of its own.
size_t shared_messages(const Json& a, const Json& b) {
  const size_t most = std::min(a.size(), b.size()) - 1;
  size_t count = 0;
  while (count < most && a[count] == b[count]) ++count;
  return count;
}

// The bytes that both texts begin with; each keeps one of its own, and whole characters. A space before what differs
// belongs to the answers, as tokenizers cut words.
size_t shared_text(const std::string& a, const std::string& b) {
  const size_t most = std::max<size_t>(std::min(a.size(), b.size()), 1) - 1;
  size_t count = 0;
  while (count < most && a[count] == b[count]) ++count;
  count = utf8_prefix(std::string_view(a).substr(0, count));
  return count > 0 && a[count - 1] == ' ' ? count - 1 : count;
}

// Whether a conversation holds the prompt already, and no answer to it alone.
bool holds_prompt(const Json& conversation, const Json& prompt, bool is_text) {
  if (is_text) {
    const auto asked = std::ranges::find_if(conversation, [](const Json& m) { return m.at("role") == "user"; });
    return asked != conversation.end() && said(*asked) == said(prompt[0]);
  }
  return conversation.size() > prompt.size() && std::equal(prompt.begin(), prompt.end(), conversation.begin());
}

RowText implicit_prompt(Json chosen, Json rejected, const std::string& source, const PairColumns& columns) {
  RowText out;
  out.prompt_messages = shared_messages(chosen, rejected);
  if (out.prompt_messages == 0)
    fail(ErrorKind::data,
         "{}: '{}' and '{}' begin with different messages, and no other field is their prompt. Want the same messages "
         "and then an answer in each, or the prompt in a field '{}'",
         source, columns.chosen, columns.rejected, columns.prompt);
  out.messages = std::move(chosen);
  out.rejected = std::move(rejected);
  return out;
}

// Texts that begin with their prompt.
RowText implicit_text(const std::string& chosen, const std::string& rejected, const std::string& source,
                      const PairColumns& columns) {
  RowText out;
  out.is_plain = true;
  out.prompt_messages = 1;
  const size_t shared = shared_text(chosen, rejected);
  if (shared == 0)
    fail(ErrorKind::data,
         "{}: '{}' and '{}' begin with different text, and no other field is their prompt. Want the same text and then "
         "an answer in each, or the prompt in a field '{}'",
         source, columns.chosen, columns.rejected, columns.prompt);
  out.messages = Json::array({message("user", chosen.substr(0, shared)), message("assistant", chosen.substr(shared))});
  out.rejected =
      Json::array({message("user", chosen.substr(0, shared)), message("assistant", rejected.substr(shared))});
  return out;
}

}  // namespace

RowText read_pair(const Json& row, const std::string& source, const PairColumns& columns) {
  const bool listed = is_list(row, columns.chosen);
  Json chosen = row_messages(row, columns.chosen, "assistant", source),
       rejected = row_messages(row, columns.rejected, "assistant", source);
  if (listed != is_list(row, columns.rejected))
    fail(ErrorKind::data, "{}: of '{}' and '{}' one is text and the other a list of messages, want both alike", source,
         columns.chosen, columns.rejected);
  const Json* given = find_field(row, columns.prompt);
  if (listed && (!given || given->is_null()))
    return implicit_prompt(std::move(chosen), std::move(rejected), source, columns);
  if (!given) return implicit_text(said(chosen[0]), said(rejected[0]), source, columns);
  const bool is_text = !given->is_array();
  Json prompt = row_messages(row, columns.prompt, "user", source);
  if (listed && holds_prompt(chosen, prompt, is_text))
    return implicit_prompt(std::move(chosen), std::move(rejected), source, columns);
  if (chosen[0].at("role") == "user" || rejected[0].at("role") == "user")
    fail(ErrorKind::data,
         "{}: '{}' and '{}' begin with a user's message that is not '{}': which of them is the prompt? Want answers "
         "alone, or conversations that begin with the prompt",
         source, columns.chosen, columns.rejected, columns.prompt);
  RowText out;
  out.is_plain = is_text && !listed && !columns.with_template;
  out.prompt_messages = prompt.size();
  out.messages = prompt;
  out.rejected = std::move(prompt);
  append(out.messages, chosen);
  append(out.rejected, rejected);
  return out;
}

}  // namespace hexad::text
