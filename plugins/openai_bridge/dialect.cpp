#include "plugins/openai_bridge/dialect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "lib/http/client/error_text.hpp"
#include "plugins/openai_bridge/protocol/answer.hpp"
#include "plugins/openai_bridge/protocol/probes.hpp"
#include "plugins/server_bridge/refit/channel.hpp"

namespace hexad::openai {
namespace {

using http::client::shown;

// Some text, of which every server can draw a few tokens.
bridge::Request first_request(const TextTokens& text) {
  bridge::Request request;
  request.max_new_tokens = 4, request.temperature = 0;
  request.prompt = {1};
  if (!text.is_there()) return request;
  for (const char* prompt : {"Hello", "a"}) {  // a tokenizer need not have every letter
    if (std::vector<int32_t> ids = text.ids_of_prompt(prompt); !ids.empty()) {
      request.prompt = std::move(ids);
      break;
    }
  }
  return request;
}

std::string names_of(const std::vector<bridge::Served>& models) {
  constexpr size_t kMost = 8;
  std::string names;
  for (size_t i = 0; i < std::min(models.size(), kMost); ++i)
    names += (names.empty() ? "'" : ", '") + shown(models[i].name) + "'";
  return models.size() > kMost ? fmt::format("{} and {} more", names, models.size() - kMost) : names;
}

// The end of a text may be the beginning of a letter.
std::string_view whole_letters(std::string_view text) {
  constexpr std::string_view kBroken = "\xEF\xBF\xBD";
  while (text.ends_with(kBroken)) text.remove_suffix(kBroken.size());
  while (text.starts_with(' ')) text.remove_prefix(1);
  return text;
}

bool begins_alike(std::string_view a, std::string_view b) {
  a = whole_letters(a), b = whole_letters(b);
  return a.starts_with(b) || b.starts_with(a);
}

}  // namespace

Dialect::Dialect(DialectSettings settings) : settings_(std::move(settings)), first_(first_request(text_)) {
  probes_.push_back({kModels, "GET", kModels, "", read_models});
  const std::optional<std::string> prompt = text_.is_there() ? text_.text_of(first_.prompt) : std::nullopt;
  const bridge::Ask ask{first_, {}, {}, "", "", false};
  std::vector<size_t> tried;
  for (size_t i = 0; i < std::size(kForms); ++i) {
    const Form& form = kForms[i];
    const bool wanted = settings_.prompt == "auto" || (settings_.prompt == "text") != form.token_ids;
    if (!wanted || (!form.token_ids && !prompt)) continue;
    tried.push_back(i);
    bodies_.push_back(request_body(form, settings_.fixed, ask, prompt.value_or("")));
  }
  for (size_t i = 0; i < tried.size(); ++i)
    probes_.push_back({"a first request", "POST", kCompletions, bodies_[i].c_str(), kReadForms[tried[i]]});
}

void Dialect::launch(server::Command& command, const bridge::Launch& launch) const {
  for (std::string& argument : command.arguments)
    if (argument == "{model}") argument = launch.model_dir;
  command.arguments.insert(command.arguments.end(), {"--host", "127.0.0.1", "--port", std::to_string(launch.port)});
  for (const char* name : {"VLLM_API_KEY", "LLAMA_API_KEY"}) command.environment[name] = launch.api_key;
}

const char* Dialect::health() const { return kModels; }

std::string Dialect::mismatch(const Facts& facts) const {
  const auto served = std::ranges::find(facts.models, settings_.fixed.model, &bridge::Served::name);
  if (!facts.models.empty() && served == facts.models.end()) {
    return fmt::format("it serves {}, wanted '{}': policy.generation.openai_cfg.model is to be the name of its model",
                       names_of(facts.models), settings_.fixed.model);
  }
  if (served != facts.models.end()) {
    const int64_t tokens = served->vocabulary;
    if (tokens > 0 && settings_.vocabulary > 0 && tokens != settings_.vocabulary && tokens != text_.size()) {
      return fmt::format("it serves another model: its vocabulary has {} tokens, that of policy.model_name {}", tokens,
                         settings_.vocabulary);
    }
    if (served->max_length > 0 && served->max_length < settings_.max_length) {
      return fmt::format(
          "it takes {} tokens, and policy.max_total_sequence_length is {}: lower that, or start it with "
          "as many",
          served->max_length, settings_.max_length);
    }
  }
  if (facts.form.empty()) {
    return fmt::format("it takes no request: {}: {}. policy.generation.openai_cfg.prompt is {}{}", kCompletions,
                       facts.sample, settings_.prompt,
                       text_.is_there() ? "" : ", and of texts no tokens can be made: " + text_.why_not());
  }
  try {
    check_sample(facts);
  } catch (const std::exception& error) {
    return fmt::format("its answer to a first request is wrong: {}", error.what());
  }
  return "";
}

// That its tokens are those of the run's model.
void Dialect::check_sample(const Facts& facts) const {
  const Form& form = form_named(facts.form);
  const bridge::Chunk chunk = read_answer(facts, {first_, {}, {}, "", "", false}, facts.sample);
  const std::string said = text_in(facts.sample);
  if (!form.token_ids || tells_by(facts.sample) != Tells::token_ids || said.empty() || !text_.is_there()) return;
  const std::string own = text_.decode(chunk.tokens, false), plain = text_.decode(chunk.tokens, true);
  if (begins_alike(own, said) || begins_alike(plain, said)) return;
  throw std::runtime_error(
      fmt::format("its tokens {} are '{}' in the tokenizer of policy.model_name, and it says '{}': "
                  "it serves a model of another vocabulary",
                  fmt::join(chunk.tokens, " "), shown(own), shown(said)));
}

std::string Dialect::body_of(const Facts& facts, const bridge::Ask& ask) const {
  const Form& form = form_named(facts.form);
  // doubt() has seen that there is one, and that no tokens follow.
  return request_body(form, settings_.fixed, ask, form.token_ids ? "" : text_.text_of(ask.request.prompt).value_or(""));
}

bridge::Chunk Dialect::read_answer(const Facts& facts, const bridge::Ask& ask, std::string_view body) const {
  const auto made = static_cast<int64_t>(ask.tokens.size());
  const Asked asked{.prompt = static_cast<int64_t>(ask.request.prompt.size()) + made,
                    .most = ask.request.max_new_tokens - made,
                    .logprobs = settings_.fixed.logprobs,
                    .text_prompt = !form_named(facts.form).token_ids,
                    .stop_ids = ask.stop_token_ids,
                    .vocabulary = settings_.vocabulary};
  return openai::read_answer(body, asked, text_);
}

std::optional<Doubt> Dialect::doubt(const Facts& facts, const bridge::Request& request) const {
  const Form& form = form_named(facts.form);
  if (form.keys == Form::plain && (request.top_k > 0 || request.min_p > 0 || request.ignore_eos)) {
    return Doubt{.refuses = true,
                 .text = " takes none of top_k, min_p and ignore_eos: leave them out of policy.generation",
                 .about = "it has top_k, min_p or ignore_eos"};
  }
  if (form.token_ids || text_.text_of(request.prompt)) return std::nullopt;
  return Doubt{.refuses = true,
               .text =
                   " is asked with text: wanted a prompt of which the tokenizer makes the same tokens again, or a "
                   "server that takes token ids",
               .about = "its prompt is the tokens of no text"};
}

std::string Dialect::mend(long status) const {
  if (status == 401 || status == 403)
    return ". Wanted: its key in the variable that policy.generation.openai_cfg.api_key_env_var names";
  if (status == 404)
    return fmt::format(". Wanted: a server with {} and the model '{}' (policy.generation.openai_cfg.model)",
                       kCompletions, settings_.fixed.model);
  return ". policy.generation.openai_cfg.prompt and .extra_body say how it is asked";
}

std::unique_ptr<bridge::Channel> Dialect::channel(const std::string&, bridge::Control&) const {
  throw std::logic_error("OpenAI-compatible servers take no weights");
}

}  // namespace hexad::openai
