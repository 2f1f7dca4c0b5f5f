#include "plugins/openai_bridge/protocol/probes.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "lib/http/client/error_text.hpp"
#include "plugins/openai_bridge/protocol/answer.hpp"

namespace hexad::openai {
namespace {

using bridge::Answer;
using bridge::Facts;
using bridge::Verdict;
using Json = nlohmann::ordered_json;

constexpr size_t kMostModels = 10'000;  // of one server

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t count_at(const Json& json, const char* key) {
  if (!json.is_object()) return 0;
  const auto found = json.find(key);
  return found != json.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

// What is none of the question's own: no answer, no key, no room.
std::optional<Verdict> common(const Answer& answer) {
  const long status = answer.result.status;
  if (!answer.result.complete && !answer.result.connected) return Verdict{Verdict::trouble};
  if (status == 429) return Verdict{Verdict::trouble};
  if (status != 401 && status != 403) return std::nullopt;
  return Verdict{Verdict::wrong,
                 fmt::format("it refuses the API key (status {}: {}). Wanted: the key of the server in the variable "
                             "that policy.generation.openai_cfg.api_key_env_var names",
                             status, http::client::error_text(answer.body))};
}

template <size_t I>
Verdict read_form(const Answer& answer, Facts& facts) {
  constexpr const Form& form = kForms[I];
  if (const auto verdict = common(answer)) return *verdict;
  facts.sample = answer.ok() ? answer.body : answer.trouble();
  if (!answer.ok()) return {};
  facts.form = form.name;
  facts.generate = kCompletions;
  facts.version = fmt::format("server{}, asked with {}", facts.version, form.name);
  const Tells tells = tells_by(answer.body);
  if (tells != Tells::token_ids) {
    facts.notice = fmt::format(
        " tells no token ids: its text is tokenised again by the tokenizer of the run's model, into ids that {} and "
        "need not be those that it drew",
        tells == Tells::text ? "decode to it" : "have the texts of its tokens");
  }
  return {Verdict::ready};
}

template <size_t... I>
constexpr std::array<ReadForm, sizeof...(I)> all_forms(std::index_sequence<I...>) {
  return {read_form<I>...};
}

}  // namespace

const std::array<ReadForm, std::size(kForms)> kReadForms = all_forms(std::make_index_sequence<std::size(kForms)>());

Verdict read_models(const Answer& answer, Facts& facts) {
  facts = {};  // it may be another server than before
  if (const auto verdict = common(answer)) return *verdict;
  if (answer.failed()) return {Verdict::trouble};
  if (answer.result.status == 404 || answer.result.status == 405) return {};  // it need not have a list
  const auto none = [&](const std::string& got) {
    return Verdict{Verdict::wrong, fmt::format("it is no OpenAI-compatible server: {}: {}, wanted a list `data` of "
                                               "models. policy.generation.openai_cfg.server_urls names it",
                                               kModels, got)};
  };
  if (!answer.ok()) return none(answer.trouble());
  const Json json = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("data") || !json.at("data").is_array())
    return none("got '" + http::client::shown(answer.body) + "'");
  for (const Json& model : json.at("data")) {
    if (!model.is_object() || facts.models.size() == kMostModels) continue;
    facts.models.push_back(
        {text_at(model, "id"), count_at(model, "max_model_len"), count_at(model.value("meta", Json()), "n_vocab")});
    if (const std::string owner = text_at(model, "owned_by"); !owner.empty())
      facts.version = fmt::format(" ({})", http::client::shown(owner));
  }
  return {};
}

}  // namespace hexad::openai
