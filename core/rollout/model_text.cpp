#include "core/rollout/model_text.hpp"

#include <set>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/hub/hub.hpp"
#include "lib/model/error.hpp"
#include "lib/model/family/model_config.hpp"
#include "lib/text/conversation/message.hpp"
#include "lib/text/tokenizer/tokenizer_config.hpp"

namespace hexad::rollout {
namespace {

using Json = nlohmann::ordered_json;

Json read_json(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return Json::object();
  Json json = try_parse_json<Json>(read_file(path));
  if (!json.is_object()) fail(ErrorKind::data, "{}: not a JSON object", path.string());
  return json;
}

// What models say wrongly a worker would refuse.
void add_eos_ids(const std::filesystem::path& file, std::set<int64_t>& eos) try {
  const nlohmann::json json = read_json(file);
  for (const int64_t id : model::token_ids(model::ConfigFields(json, file.string()), "eos_token_id")) eos.insert(id);
} catch (const model::Error& error) {
  fail(ErrorKind::data, "{}", error.what());
}

std::optional<text::ChatTemplate> choose_template(const std::filesystem::path& model_dir,
                                                  const config::TokenizerConfig& config, bool with_tools) {
  if (!config.chat_template) return std::nullopt;
  const std::string& wanted = *config.chat_template;
  if (wanted == "default") return text::ChatTemplate::for_model(model_dir, with_tools);
  if (auto named = text::ChatTemplate::named(model_dir, wanted)) return named;
  if (wanted.find('{') == std::string::npos && !wanted.ends_with(".jinja")) {
    fail(
        ErrorKind::config,
        "policy.tokenizer.chat_template: '{}' is no template, and {} has none of this name. Wanted: \"default\", null, "
        "a name of the model's, a *.jinja file or a template",
        wanted, model_dir.string());
  }
  if (!wanted.ends_with(".jinja")) return text::ChatTemplate::parse(wanted, "policy.tokenizer.chat_template");
  std::error_code unreadable;
  if (!std::filesystem::exists(wanted, unreadable))
    fail(ErrorKind::data, "policy.tokenizer.chat_template: cannot read {}", wanted);
  return text::ChatTemplate::parse(read_file(wanted), wanted);
}

std::filesystem::path tokenizer_directory(const std::filesystem::path& model_dir,
                                          const config::TokenizerConfig& config) {
  if (config.name.empty()) return model_dir;
  std::error_code unreadable;
  if (std::filesystem::is_directory(config.name, unreadable)) return config.name;
  if (const auto cached = hub::find(hub::Use::tokenizer, "policy.tokenizer.name", config.name)) return *cached;
  fail(ErrorKind::config,
       "policy.tokenizer.name: no directory '{}'. Wanted: a directory with tokenizer.json; leave the key out to use "
       "the model's{}",
       config.name, hub::how_to_fetch(hub::Use::tokenizer, config.name));
}

}  // namespace

int64_t vocabulary_size(const std::filesystem::path& model_dir) {
  const std::filesystem::path file = model_dir / "config.json";
  const Json rows = read_json(file).value("vocab_size", Json(0));
  if (!rows.is_number_integer())
    fail(ErrorKind::data, "{}: vocab_size is {}, want a whole number", file.string(), json_text(rows));
  return rows.get<int64_t>();
}

ModelText load_model_text(const std::filesystem::path& model_dir, const config::TokenizerConfig& config) {
  ModelText result;
  const std::filesystem::path tokenizer_dir = tokenizer_directory(model_dir, config);
  result.tokenizer_dir = tokenizer_dir;
  result.tokenizer = text::Tokenizer::load(tokenizer_dir);
  const text::TokenizerConfig tokens = text::TokenizerConfig::load(tokenizer_dir);
  result.bos_token = tokens.bos_token.value_or("");
  result.eos_token = tokens.eos_token.value_or("");
  result.special_tokens = tokens.special_tokens;
  result.chat_template = choose_template(tokenizer_dir, config, false);
  result.tool_template = choose_template(tokenizer_dir, config, true);
  result.chat_template_kwargs = config.chat_template_kwargs;

  std::set<int64_t> eos;
  for (const char* file : {"generation_config.json", "config.json"}) add_eos_ids(model_dir / file, eos);
  if (const auto id = result.tokenizer->token_to_id(result.eos_token)) eos.insert(*id);
  result.eos_ids.assign(eos.begin(), eos.end());

  const int64_t rows = vocabulary_size(model_dir);
  if (rows > 0 && result.tokenizer->vocab_size() > rows) {
    fail(
        ErrorKind::data,
        "{}: the tokenizer has ids up to {}, the model's vocab_size is {} ({}). They do not belong together: the model "
        "has no row for {}",
        tokenizer_dir.string(), result.tokenizer->vocab_size() - 1, rows, (model_dir / "config.json").string(),
        result.tokenizer->id_to_token(result.tokenizer->vocab_size() - 1));
  }
  return result;
}

data::TextTools ModelText::tools() const {
  data::TextTools tools;
  const auto encode = [this](std::string_view text, bool add_special_tokens) {
    const std::vector<int32_t> ids = tokenizer->encode(text, add_special_tokens);
    return std::vector<int64_t>(ids.begin(), ids.end());
  };
  tools.encode = [encode](std::string_view text) { return encode(text, false); };
  tools.encode_plain = [encode](std::string_view text) { return encode(text, true); };
  tools.render = [this](const Json& messages, const data::RenderOptions& options) {
    if (!chat_template) {
      std::string text;
      for (size_t i = 0; i < messages.size(); ++i) {
        const Json content = messages[i].value("content", Json());
        if (!content.is_string() && !content.is_null())
          fail(ErrorKind::data,
               "messages[{}].content is {}, want text: without a chat template (policy.tokenizer.chat_template) "
               "messages "
               "are only joined",
               i, content.type_name());
        if (content.is_string()) text += content.get_ref<const std::string&>();
      }
      return text;
    }
    text::ChatOptions chat;
    chat.tools = options.tools;
    chat.add_generation_prompt = options.add_generation_prompt;
    chat.special_tokens = special_tokens;
    chat.extra = chat_template_kwargs;
    const text::ChatTemplate& chosen = options.tools.is_null() ? *chat_template : *tool_template;
    return text::render_parts(messages, [&](const Json& shown) { return chosen.render(shown, chat); });
  };
  return tools;
}

}  // namespace hexad::rollout
