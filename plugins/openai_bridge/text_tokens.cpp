#include "plugins/openai_bridge/text_tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "lib/http/client/error_text.hpp"

namespace hexad::openai {
namespace {

using http::client::shown;

// Tokenizers like Llama's write a word with the space before it, which the decoder drops at the start of a text.
std::string_view without_space(std::string_view text) {
  if (text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

}  // namespace

TextTokens::TextTokens(const std::filesystem::path& folder) {
  try {
    tokenizer_ = text::Tokenizer::load(folder);
  } catch (const std::exception& error) {
    why_not_ = error.what();
  }
}

const text::Tokenizer& TextTokens::need() const {
  if (tokenizer_) return *tokenizer_;
  throw std::runtime_error("a text for which a tokenizer is needed (policy.generation.openai_cfg.tokenizer): " +
                           why_not_);
}

std::optional<std::string> TextTokens::text_of(std::span<const int32_t> prompt) const {
  const text::Tokenizer& tokenizer = need();
  const auto is_made_of = [&](const std::string& text) { return std::ranges::equal(ids_of_prompt(text), prompt); };
  std::string text = tokenizer.decode(prompt, /*skip_special_tokens=*/false);
  if (is_made_of(text)) return text;
  if (prompt.empty() || !tokenizer.is_special(prompt[0])) return std::nullopt;
  text = tokenizer.decode(prompt.subspan(1), /*skip_special_tokens=*/false);  // the server adds the first itself
  return is_made_of(text) ? std::optional(text) : std::nullopt;
}

std::vector<int32_t> TextTokens::ids_of(std::string_view answer) const {
  const text::Tokenizer& tokenizer = need();
  std::vector<int32_t> ids = tokenizer.encode(answer, /*add_special_tokens=*/false);
  const std::string back = tokenizer.decode(ids, /*skip_special_tokens=*/false);
  if (without_space(back) == without_space(answer)) return ids;
  throw std::runtime_error(
      fmt::format("the text '{}', whose {} tokens of policy.model_name decode to '{}': wanted "
                  "the text of a model with that tokenizer",
                  shown(answer), ids.size(), shown(back)));
}

std::vector<int32_t> TextTokens::ids_of(std::span<const std::string> tokens) const {
  std::string answer;
  for (const std::string& token : tokens) answer += token;
  std::vector<int32_t> ids = ids_of(answer);
  for (size_t i = 0; i < std::min(ids.size(), tokens.size()); ++i) {
    const std::string own = need().decode(std::span(&ids[i], 1), /*skip_special_tokens=*/false);
    if (without_space(own) == without_space(tokens[i])) continue;
    throw std::runtime_error(
        fmt::format("token {} as '{}', which is '{}' in the tokenizer of policy.model_name: its "
                    "log-probs are of other tokens",
                    i, shown(tokens[i]), shown(own)));
  }
  if (ids.size() == tokens.size()) return ids;
  throw std::runtime_error(
      fmt::format("{} tokens, whose text has {} in the tokenizer of policy.model_name: its "
                  "log-probs are of other tokens",
                  tokens.size(), ids.size()));
}

std::vector<int32_t> TextTokens::ids_of_prompt(std::string_view text) const {
  try {
    return need().encode(text, /*add_special_tokens=*/true);
  } catch (const std::exception&) {
    return {};
  }
}

std::string TextTokens::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  return need().decode(ids, skip_special_tokens);
}

}  // namespace hexad::openai
