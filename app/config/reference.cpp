#include "app/config/reference.hpp"

#include "app/config/reference_plugin.hpp"
#include "core/config/rules/check_keys.hpp"
#include "core/config/schema/schema.hpp"
#include "lib/base/text.hpp"

namespace hexad::config {
namespace {

constexpr const char* kIntroduction = R"(# Configuration

The keys of a Hexad config. They are NeMo-RL's, with a few of Hexad's own; those of plugins have pages of their own,
which [a table](#keys-of-plugins) lists. This page is generated from the schema in `core/config/schema/`;
`tools/update_config_docs.sh` writes it anew.

## Files and overrides

- YAML 1.1 as OmegaConf reads it: `1e-8` is a number, `yes` and `on` are booleans, `None` is text, `012` is 10; a key
  written twice is an error.
- `defaults: base.yaml` (or a list) inherits from other files, relative to the file that names them; later ones win, the
  file itself wins over all. Mappings merge, everything else replaces. `_override_: true` in a top-level section drops
  what the parents say there. `???` marks a value that a child or the command line must give.
- `${a.b}` refers to another key, `${.b}` to one beside, `${..b}` to one above. There are `${add:x,y}`, `${mul:x,y}`,
  `${div:x,y}`, `${max:x,y}`, `${oc.env:NAME,default}`, `${oc.select:key,default}`, `${oc.decode:text}`.
- On the command line: `a.b=1` sets a key, `+a.b=1` adds one, `++a.b=1` does either, `~a.b` removes one. Values are
  numbers, `true`, `null`, text, `[lists]`, `{maps: 1}`; text with other characters is quoted: `a.b='x, y'`.
- `hexad config check CONFIG` names every mistake with file, line and column, and refuses what `train` would refuse
  before its first step, in the same words: also a model, a reward program or a plugin that is not there, the rows of
  data sets that a run looks at, devices, folders, a checkpoint of another run. It starts nothing and leaves nothing
  behind but what is kept of [large data files](data_files.md#what-is-large), which the run finds again. Data sets and
  models of the Hub that are not on this machine may be where the run will be: these are notices, and with `--here`
  errors, as `train` has them. Exit code 0: valid; 2: not; 3: only files of plugins are refused.
- `hexad config show CONFIG` prints what a config comes to, defaults included, and with `--origin` the file, override or
  default that each value comes from. Of a large model `check` also says how many GiB a rank that trains holds beside
  activations (`--json`: in bytes). Notices that say the same of several keys are one line.

## NeMo-RL's own configs

Those of NeMo-RL 0.3.0 are valid as they are. Of the newest the file `tests/config/nemo_recipes.txt` says which are
valid, and which keys of the others name what cannot run here; `tools/check_nemo_recipes.sh CHECKOUT/examples/configs`
compares it with a checkout. Engines that no plugin here serves (`policy.generation.backend`) are read as the default
generator, and a line says so. `env.math.verifier_type: multichoice` is `english_multichoice`, and
`multilingual_multichoice` where `data.dataset_name` is MMLU in another language (`mmlu_ZH-CN`).

Where NeMo-RL loses or distorts what is trained on, the default here is another one, and a run that it makes a
difference to says so at its start; a key of `compat` brings NeMo-RL's way back.

## ROLL's form

A file whose top level has ROLL's roles (`actor_train`, `actor_infer`, ...) and none of NeMo-RL's blocks is translated
to the keys below: [roll.md](roll.md).

## Keys of plugins

A plugin declares its keys itself (`sdk/CONFIG.md`), and they are checked like the engine's own. Those that come with
the engine have a page each; `hexad plugin info NAME` prints the keys of any plugin that is found.

)";

constexpr const char* kReading = R"(
## How to read the tables

A key without a default has none. `*`: any name. Where a default names another key, it is the value of that key, if it
is there; "of the model" is a member of the model's config.json; with auto the row says how an absent value is chosen.
What becomes of a key:

- Where nothing is said, it has its effect.
- *Accepted:* it may stay in a config, and means here what is said.
- *Not available:* only the values that leave the feature off are accepted; others are refused before anything starts.
- *With that feature:* a detail of a feature that is not available; it may stay in a config.
)";

const std::pair<Kinds, const char*> kKindNames[] = {{kBool, "bool"}, {kInt, "int"}, {kFloat, "float"}, {kText, "str"},
                                                    {kList, "list"}, {kMap, "map"}, {kNull, "null"}};

// " of int": what a list or a map holds; "" if that is anything.
std::string content_text(Kinds content) {
  std::string result;
  if (content == kAny) return result;
  for (const auto& [kind, name] : kKindNames) {
    if (content & kind) result += fmt::format(" of {}", name);
  }
  return result;
}

std::string in_code(const std::string& text, Form form) { return form == Form::markdown ? "`" + text + "`" : text; }

std::string all_in_code(const std::vector<std::string>& texts, Form form) {
  std::vector<std::string> marked;
  for (const std::string& text : texts) marked.push_back(in_code(text, form));
  return joined(marked);
}

std::string emphasized(const char* text, Form form) {
  return form == Form::markdown ? fmt::format("*{}*", text) : std::string(text);
}

std::string table_cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

bool is_core_section(const Key& key) {
  return (key.kinds & kMap) && !key.open && !core_schema().children(key.path).empty();
}

void write_core_section(const Key& section, std::string& out) {
  out += fmt::format("\n## {}\n\n{}.{}\n", section.path, section.meaning, status_text(section, Form::markdown));
  std::string rows;
  for (const std::string& path : core_schema().children(section.path)) {
    const Key& key = *core_schema().find(path);
    if (!is_core_section(key) || (key.kinds & kList)) rows += table_row(key);
  }
  if (section.path == "env") rows += "| `*` | map | | arguments of the environment of this name: docs/rewards.md. |\n";
  if (!rows.empty()) out += kTableHead + rows;
}

std::string plugin_index(const std::vector<const Installed*>& plugins) {
  if (plugins.empty()) return "";
  std::string out = "| plugin | kind | its keys |\n|---|---|---|\n";
  for (const Installed* each : plugins) {
    out += fmt::format("| [{0}](plugins/{0}.md) | {1} | {2} |\n", each->name(), plugin::kind_name(each->kind()),
                       all_in_code(plugin_sections(*each->declaration()), Form::markdown));
  }
  return out;
}

}  // namespace

std::string type_text(const Key& key) {
  if (key.kinds == kAny) return "any";
  std::string result;
  for (const auto& [kind, name] : kKindNames) {
    if (!(key.kinds & kind)) continue;
    result += (result.empty() ? "" : " or ") + std::string(name);
    if (kind == kList) result += content_text(key.element_kinds);
    if (kind == kMap) result += content_text(key.value_kinds);
  }
  return result;
}

std::string default_text(const Key& key, Form form) {
  if (!key.automatic.empty()) return "auto";
  std::string result = all_in_code(key.first_of, form);
  if (!key.model_member.empty()) result = in_code(key.model_member, form) + " of the model";
  if (key.default_yaml.empty()) return result;
  return (result.empty() ? "" : result + ", else ") + in_code(key.default_yaml, form);
}

std::string status_text(const Key& key, Form form) {
  switch (key.status) {
    case Status::effective: return "";
    case Status::accepted:
      return key.note.empty() ? "" : fmt::format(" {} {}.", emphasized("Accepted:", form), key.note);
    case Status::dormant: return " " + emphasized("With that feature.", form);
    case Status::unavailable:
      return key.off.empty()
                 ? " " + emphasized("Not available.", form)
                 : fmt::format(" {} only {}.", emphasized("Not available:", form), all_in_code(key.off, form));
  }
  return "";
}

std::string meaning_text(const Key& key, Form form) {
  std::vector<std::string> parts;
  const auto add = [&](std::string part) {
    if (!part.empty()) parts.push_back(std::move(part));
  };
  add(key.meaning);
  add(range_text(key));
  if (!key.not_built.empty()) add(fmt::format("not available: {}", joined(key.not_built)));
  if (!key.synonyms.empty()) add(fmt::format("read as {}: {}", key.synonym_of, joined(key.synonyms)));
  if (!key.stands_for.empty()) add(fmt::format("its keys count as those of {}", in_code(key.stands_for, form)));
  if (!key.renamed_from.empty()) add(fmt::format("older name: {}", all_in_code(key.renamed_from, form)));
  if (!key.automatic.empty()) add("auto: " + key.automatic);
  const std::string status = status_text(key, form);
  if (parts.empty()) return status.empty() ? "" : status.substr(1);
  return joined(parts, "; ") + "." + status;
}

std::string table_row(const Key& key) {
  return fmt::format("| `{}` | {} | {} | {} |\n", key.path.substr(key.path.rfind('.') + 1), type_text(key),
                     table_cell(default_text(key, Form::markdown)), table_cell(meaning_text(key, Form::markdown)));
}

std::string reference_markdown(const std::vector<const Installed*>& plugins) {
  std::string out = kIntroduction + plugin_index(plugins) + kReading;
  std::string alone;
  for (const Key& key : core_schema().keys()) {
    if (is_core_section(key)) {
      write_core_section(key, out);
    } else if (key.path.find('.') == std::string::npos) {
      alone +=
          fmt::format("| `{}` | {} | {} |\n", key.path, type_text(key), table_cell(meaning_text(key, Form::markdown)));
    }
  }
  out += "\n## Other top-level blocks\n\nKeys that begin with `_` are free: they are there to be referred to.\n\n";
  out += "| key | type | meaning |\n|---|---|---|\n" + alone;
  return out;
}

}  // namespace hexad::config
