#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/text/template/chat_template.hpp"

namespace hexad::text {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// The template of a list [{"name": ..., "template": ...}] that has that name; null when there is none.
Json named(const Json& list, std::string_view name) {
  for (const Json& entry : list) {
    if (entry.is_object() && entry.value("name", Json()) == name) return entry.value("template", Json());
  }
  return nullptr;
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::for_model(const fs::path& directory, bool with_tools) {
  if (const fs::path file = directory / "chat_template.jinja"; fs::exists(file))
    return parse(read_file(file), file.string());
  const fs::path file = directory / "tokenizer_config.json";
  if (!fs::exists(file)) return std::nullopt;
  const Json config = try_parse_json<Json>(read_file(file));
  if (!config.is_object()) fail(ErrorKind::data, "{}: not a JSON object", file.string());
  Json source = config.value("chat_template", Json());
  if (source.is_null()) return std::nullopt;
  std::string origin = file.string() + " (chat_template)";
  if (source.is_array()) {
    Json chosen = with_tools ? named(source, "tool_use") : Json();
    if (chosen.is_null()) chosen = named(source, "default");
    if (chosen.is_null())
      fail(ErrorKind::data, "{}: the list of chat templates has none named \"default\"", file.string());
    source = std::move(chosen);
  }
  if (!source.is_string()) {
    fail(ErrorKind::data, "{}: \"chat_template\" must be text or a list of named templates, got {}", file.string(),
         source.type_name());
  }
  return parse(source.get<std::string>(), std::move(origin));
}

}  // namespace hexad::text
