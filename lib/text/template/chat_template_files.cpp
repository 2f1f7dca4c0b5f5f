#include <algorithm>
#include <map>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/text/template/chat_template.hpp"
#include "lib/text/tokenizer/tokenizer_files.hpp"

namespace hexad::text {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Source {
  std::string text, origin;
};
using Sources = std::map<std::string, Source>;  // by name

constexpr const char *kDefault = "default", *kWithTools = "tool_use";

void read_folder(const fs::path& folder, Sources& sources) {
  if (!fs::is_directory(folder)) return;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    if (entry.path().extension() != ".jinja" || !is_to_be_read(entry)) continue;
    sources[entry.path().stem().string()] = {read_file(entry.path()), entry.path().string()};
  }
}

void read_config(const fs::path& file, Sources& sources) {
  if (!fs::exists(file)) return;
  const Json config = try_parse_json<Json>(read_file(file));
  if (!config.is_object()) fail(ErrorKind::data, "{}: not a JSON object", file.string());
  const Json source = config.value("chat_template", Json());
  const std::string origin = file.string() + " (chat_template)";
  if (source.is_null()) return;
  if (source.is_string()) {
    sources[kDefault] = {source.get<std::string>(), origin};
    return;
  }
  if (source.is_object()) {  // by name, as transformers takes it too
    for (const auto& [name, text] : source.items()) {
      if (!text.is_string())
        fail(ErrorKind::data, "{}: template \"{}\" of \"chat_template\" is {}, want text", file.string(), name,
             text.type_name());
      sources[name] = {text.get<std::string>(), name == kDefault ? origin : origin + " " + name};
    }
    return;
  }
  if (!source.is_array())
    fail(ErrorKind::data, "{}: \"chat_template\" must be text or a list of named templates, got {}", file.string(),
         source.type_name());
  for (const Json& entry : source) {
    const auto text = [&](const char* key) {
      const Json value = entry.is_object() ? entry.value(key, Json()) : Json();
      if (!value.is_string())
        fail(ErrorKind::data, "{}: an entry of \"chat_template\" wants a text \"{}\"", file.string(), key);
      return value.get<std::string>();
    };
    const std::string name = text("name");
    sources[name] = {text("template"), name == kDefault ? origin : origin + " " + name};
  }
}

// Files win over the config as a whole, as in transformers.
Sources sources_of(const fs::path& directory) {
  Sources sources;
  read_folder(directory / kTemplateFolder, sources);
  if (const fs::path file = directory / "chat_template.jinja"; fs::exists(file))
    sources[kDefault] = {read_file(file), file.string()};
  if (sources.empty()) read_config(directory / "tokenizer_config.json", sources);
  return sources;
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::for_model(const fs::path& directory, bool with_tools) {
  const Sources sources = sources_of(directory);
  if (sources.empty()) return std::nullopt;
  auto chosen = with_tools ? sources.find(kWithTools) : sources.end();
  if (chosen == sources.end()) chosen = sources.find(kDefault);
  if (chosen == sources.end()) {
    std::vector<std::string> names;
    for (const auto& source : sources) names.push_back(source.first);
    fail(ErrorKind::data,
         "{}: the model has chat templates of the names {}, and none named \"default\": choose one by its name",
         directory.string(), joined(names));
  }
  return parse(chosen->second.text, chosen->second.origin);
}

std::optional<ChatTemplate> ChatTemplate::named(const fs::path& directory, const std::string& name) {
  const Sources sources = sources_of(directory);
  const auto found = sources.find(name);
  if (found == sources.end()) return std::nullopt;
  return parse(found->second.text, found->second.origin);
}

}  // namespace hexad::text
