#include "app/config/reference_plugin.hpp"

#include <algorithm>
#include <cmath>

#include "app/config/reference.hpp"
#include "core/config/algorithm.hpp"
#include "core/config/declaration/run_schema.hpp"
#include "core/config/load/defaults.hpp"
#include "lib/base/text.hpp"
#include "lib/yaml/file.hpp"

namespace hexad::config {
namespace {

using Json = nlohmann::ordered_json;

std::string block_for(const Declaration& declaration) {
  const std::string block = usual_block(declaration.kind, declaration.plugin);
  return block.empty() ? "env.<name>" : block;
}

std::string above(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == path.npos ? "" : path.substr(0, dot);
}

bool has_keys_below(const std::vector<Key>& keys, const std::string& path) {
  return std::ranges::any_of(keys, [&](const Key& key) { return above(key.path) == path; });
}

// A map that also takes what no key of its section is, or that may be a list, has a row besides.
bool has_row(const std::vector<Key>& keys, const Key& key) {
  return key.open || (key.kinds & kList) || !has_keys_below(keys, key.path);
}

// A heading of the page: a key that is a section, or the path above keys that none declares.
struct PageSection {
  std::string path;
  const Key* key;
};

std::vector<PageSection> page_sections(const std::vector<Key>& keys) {
  std::vector<PageSection> found;
  const auto add = [&](const std::string& path, const Key* key) {
    if (std::ranges::find(found, path, &PageSection::path) == found.end()) found.push_back({path, key});
  };
  for (const Key& key : keys) {
    if (has_row(keys, key)) add(above(key.path), nullptr);
    if (has_keys_below(keys, key.path)) add(key.path, &key);
  }
  return found;
}

// Words in angle brackets are HTML to what shows the page, but for code.
std::string heading(const std::string& path) { return path.find('<') == path.npos ? path : "`" + path + "`"; }

std::string section_text(const Key& section) {
  std::string text = section.meaning.empty() ? "" : section.meaning + ".";
  text += status_text(section, Form::markdown);
  if (section.optional) text += " Its keys have their defaults where it is written, and only there.";
  if (section.open) text += " It may hold other keys too.";
  return text.starts_with(' ') ? text.substr(1) : text;
}

void write_tables(const Declaration& declaration, const std::string& block, std::string& out) {
  const std::vector<Key> keys = plugin_keys(declaration);
  for (const PageSection& section : page_sections(keys)) {
    std::string text = section.key ? section_text(*section.key) : "keys of the plugin's own.";
    if (section.path == block)
      text = declaration.kind == plugin::Kind::environment ? "its arguments." : "keys beside those of the engine.";
    out += fmt::format("\n## {}\n", heading(section.path));
    if (!text.empty()) out += fmt::format("\n{}\n", text);
    std::string rows;
    for (const Key& key : keys) {
      if (above(key.path) == section.path && has_row(keys, key)) rows += table_row(key);
    }
    if (!rows.empty()) out += kTableHead + rows;
  }
}

std::string yaml_line(const yaml::Node& value) {
  std::string text = value.to_yaml();
  text.pop_back();
  return text;
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// Two marks where the text has some itself.
std::string code_span(const std::string& text) {
  return text.find('`') == text.npos ? "`" + one_line(text) + "`" : "`` " + one_line(text) + " ``";
}

std::string code(const expression::Expression& expression) { return code_span(expression.text()); }

void write_choice(const Declaration& declaration, const std::string& block, std::string& out) {
  std::vector<std::string> names = {declaration.plugin};
  std::ranges::copy(declaration.named, std::back_inserter(names));
  out += fmt::format("\n`{}: {}` chooses it", choosing_key(declaration.kind, "env.<name>"), joined(names, "` or `"));
  for (const auto& [key, value] : declaration.select)
    out += fmt::format(", and so does `{}.{}: {}`", block, key, yaml_line(value));
  if (declaration.kind == plugin::Kind::environment)
    out += fmt::format(", and without that key `{0}.type: {1}` or the section's own name `env.{1}`", block,
                       declaration.plugin);
  out += ".\n";
}

void write_facts(const Declaration& declaration, std::string& out) {
  if (declaration.facts.empty()) return;
  out += "\n## Facts\n\nWhat the engine knows of it before it runs (`sdk/CONFIG.md`).\n\n";
  for (const auto& [name, fact] : declaration.facts) {
    std::vector<std::string> values;
    if (fact.value) values.push_back(code(*fact.value));
    for (const auto& [member, value] : fact.members) values.push_back(fmt::format("{} {}", member, code(value)));
    out += fmt::format("- `{}`: {}{}\n", name, joined(values), fact.when ? ", where " + code(*fact.when) : "");
  }
}

void write_rules(const Declaration& declaration, std::string& out) {
  if (!declaration.lets.empty()) {
    out += "\n## Names in facts and rules\n\n";
    for (const auto& [name, value] : declaration.lets) out += fmt::format("- `lets.{}`: {}\n", name, code(value));
  }
  if (declaration.rules.empty()) return;
  out += "\n## Rules\n\nWhat must hold, and what is said where it does not.\n\n";
  for (const DeclaredRule& rule : declaration.rules) {
    out += fmt::format("- `{}`: {}{}, else {} {}", rule.key, code(rule.require),
                       rule.when ? ", where " + code(*rule.when) : "", rule.notice ? "the notice" : "the error",
                       code_span(rule.message.text()));
    if (rule.nearest) out += fmt::format(" with the nearest values for which {}", code(rule.nearest->holds));
    out += '\n';
  }
}

const char* status_name(Status status) {
  switch (status) {
    case Status::effective: return "effective";
    case Status::accepted: return "accepted";
    case Status::unavailable: return "refused";
    case Status::dormant: return "detail";
  }
  return "";
}

Json literal_json(const std::string& yaml) { return default_value(yaml).to_json(); }

}  // namespace

std::vector<Key> plugin_keys(const Declaration& declaration) {
  std::vector<Key> keys;
  for (const Key& declared : declaration.keys) {
    keys.push_back(placed_key(declared, block_for(declaration)));
    keys.back().first_of = declared.first_of;
  }
  return keys;
}

std::vector<std::string> plugin_sections(const Declaration& declaration) {
  const std::string block = block_for(declaration);
  std::vector<std::string> found;
  for (const Key& key : declaration.keys) {
    const bool top = key.path.find('.') == key.path.npos;
    std::string section = top && !(key.kinds & kMap) ? block : block + "." + key.path.substr(0, key.path.find('.'));
    if (std::ranges::find(found, section) == found.end()) found.push_back(std::move(section));
  }
  return found;
}

Json key_json(const Key& key) {
  Json json = {{"key", key.path}, {"type", type_text(key)}};
  if (!key.automatic.empty()) {
    json["default"] = {{"auto", key.automatic}};
  } else if (!key.first_of.empty() || !key.model_member.empty()) {
    Json& form = json["default"];
    if (!key.first_of.empty()) form["first_of"] = key.first_of;
    if (!key.model_member.empty()) form["model"] = key.model_member;
    if (!key.default_yaml.empty()) form["else"] = literal_json(key.default_yaml);
  } else if (!key.default_yaml.empty()) {
    json["default"] = literal_json(key.default_yaml);
  }
  json["meaning"] = key.meaning;
  json["status"] = status_name(key.status);
  if (!key.note.empty()) json["note"] = key.note;
  if (!key.detail_of.empty()) json["detail_of"] = key.detail_of;
  if (!std::isinf(key.minimum)) json[key.minimum_excluded ? "above" : "min"] = key.minimum;
  if (!std::isinf(key.maximum)) json["max"] = key.maximum;
  if (!key.choices.empty()) json["choices"] = key.choices;
  if (!key.not_built.empty()) json["not_built"] = key.not_built;
  for (const std::string& off : key.off) json["allowed"].push_back(literal_json(off));
  if (!key.synonyms.empty()) json["read_as"] = {{"text", key.synonym_of}, {"from", key.synonyms}};
  if (!key.renamed_from.empty()) json["renamed_from"] = key.renamed_from;
  if (key.open) json["open"] = true;
  if (key.optional) json["optional"] = true;
  return json;
}

std::string plugin_reference_markdown(const Installed& plugin) {
  const Declaration& declaration = *plugin.declaration();
  const std::string block = block_for(declaration);
  std::string out =
      fmt::format("# {0}\n\nThe keys of the {1} plugin `{0}`, generated from its declaration: ", declaration.plugin,
                  plugin::kind_name(declaration.kind));
  out += "`tools/update_config_docs.sh` writes this page\nanew. ";
  out += "[config.md](../config.md#how-to-read-the-tables) says how to read the tables. Names in defaults, facts and\n";
  out += fmt::format("rules count from the block `{}`.\n", block);
  write_choice(declaration, block, out);
  write_tables(declaration, block, out);
  write_facts(declaration, out);
  write_rules(declaration, out);
  if (!declaration.reads.empty()) {
    out += fmt::format("\n## Keys of the engine that it reads\n\n`{}`\n", joined(declaration.reads, "`, `"));
  }
  return out;
}

std::vector<const Installed*> plugins_with_pages(const Catalog& catalog) {
  std::vector<const Installed*> found;
  for (const Installed& each : catalog.all()) {
    if (each.candidate().trusted && each.declaration() && !each.declaration()->keys.empty()) found.push_back(&each);
  }
  std::ranges::sort(found, {}, [](const Installed* each) { return std::pair(each->kind(), each->name()); });
  return found;
}

}  // namespace hexad::config
