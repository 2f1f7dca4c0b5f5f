#include "core/config/declaration/run_schema.hpp"

#include <algorithm>

#include "core/config/algorithm.hpp"

namespace hexad::config {
namespace {

constexpr std::string_view kPluginConfig = "plugin_config.", kRun = "run.";

// "${a.b}" -> "${block.a.b}", inside of resolvers too; "${run.a.b}" -> "${a.b}"; "${.a}" stays.
std::string placed_references(const std::string& yaml, const std::string& block) {
  std::string result;
  for (size_t at = 0; at < yaml.size(); ++at) {
    result += yaml[at];
    if (yaml[at] != '{' || at == 0 || yaml[at - 1] != '$') continue;
    const size_t end = yaml.find_first_of(":}$", at + 1);
    const bool reference = end != yaml.npos && yaml[end] == '}' && yaml[at + 1] != '.';
    if (!reference) continue;
    if (yaml.compare(at + 1, kRun.size(), kRun) == 0)
      at += kRun.size();
    else
      result += block + ".";
  }
  return result;
}

// True for a key of the engine's own that does something.
bool is_engines(const Schema& core, const std::string& path) {
  const Key* key = core.find(path);
  return key && key->path == path && key->status == Status::effective;
}

bool is_beside(const Key& key) { return !key.path.starts_with(kPluginConfig); }

// A map that holds what is declared below it, and nothing else.
void close_map(Schema& schema, const std::string& path, const char* meaning) {
  const Key* there = schema.find(path);
  Key map = there ? *there : Key{};
  map.path = path, map.kinds = kMap | kNull, map.open = false;
  if (map.meaning.empty()) map.meaning = meaning;
  schema.put(std::move(map));
}

// `taken`: first names of keys that are another plugin's here.
void place(Schema& schema, const Declaration& declaration, const std::string& block, bool chosen,
           std::vector<Problem>* problems, const std::string& chosen_file, const std::vector<std::string>& taken = {}) {
  for (const Key& declared : declaration.keys) {
    if (std::ranges::find(taken, declared.path.substr(0, declared.path.find('.'))) != taken.end()) continue;
    if (!chosen && !is_beside(declared)) continue;  // the map is another plugin's here
    Key key = placed_key(declared, block);
    if (is_engines(core_schema(), key.path)) continue;
    const Key* there = schema.find(key.path);
    if (!chosen && there && there->path == key.path && there->plugin == declaration.plugin) continue;
    if (there && there->path == key.path && !there->plugin.empty() && there->plugin != declaration.plugin) {
      if (problems)
        problems->push_back(
            {Problem::Severity::error,
             {},
             key.path,
             fmt::format("both {} and {} declare it: choose one of the two plugins", there->plugin_file, chosen_file)});
      continue;
    }
    key.plugin_file = chosen_file;
    const bool is_switch =
        std::ranges::any_of(declaration.select, [&](const auto& s) { return s.first == declared.path; });
    if (!chosen || is_switch) key.filled = false;
    schema.put(std::move(key));
  }
  if (!chosen || declaration.keys.empty()) return;
  close_map(schema, block + ".plugin_config", "keys of the plugin's own");
  const bool beside = std::ranges::any_of(declaration.keys, [](const Key& key) { return is_beside(key); });
  if (declaration.kind != plugin::Kind::environment || !beside) return;
  // The block is this plugin's alone.
  close_map(schema, block, "arguments of the environment");
  for (const char* name : {"plugin", "type"}) {
    Key choosing;
    choosing.path = block + "." + name, choosing.kinds = kText | kNull, choosing.meaning = "what makes it";
    schema.put(std::move(choosing));
  }
}

// The sections of other systems that no plugin here owns.
void add_others(Schema& schema, std::span<const OtherSection> sections) {
  for (const OtherSection& section : sections) {
    const std::string path = fmt::format("{}.{}", section.block, section.section);
    if (schema.find(path)) continue;
    Key key;
    key.path = path, key.kinds = kAny, key.open = true, key.status = Status::accepted;
    key.meaning = fmt::format("of the plugin {}, which is not installed", section.plugin);
    key.note = section.block == "policy"
                   ? fmt::format("not read: the backend {} is not installed", section.plugin)
                   : fmt::format("that generator does not run here: no generator {} is installed", section.plugin);
    schema.put(std::move(key));
  }
}

}  // namespace

Key placed_key(const Key& declared, const std::string& block) {
  Key key = declared;
  key.path = block + "." + declared.path;
  key.default_yaml = placed_references(declared.default_yaml, block);
  for (std::string& path : key.first_of) path = block + "." + path;
  for (std::string& path : key.renamed_from) path = block + "." + path;
  if (!key.detail_of.empty()) key.detail_of = block + "." + key.detail_of;
  if (!key.stands_for.empty()) key.stands_for = block + "." + key.stands_for;
  return key;
}

Schema run_schema(Selection& selection) {
  Schema schema = core_schema();
  for (const Chosen* chosen : selection.all()) {
    if (const Declaration* declaration = chosen->declaration())
      place(schema, *declaration, chosen->block, true, &selection.problems, declaration->manifest);
  }
  for (const Dormant& dormant : selection.dormant)
    place(schema, *dormant.declaration, dormant.block, false, nullptr, dormant.declaration->manifest, dormant.taken);
  add_others(schema, selection.sections);
  return schema;
}

Schema known_schema(Selection& selection) {
  Schema schema = run_schema(selection);
  for (const Installed& each : selection.catalog->all()) {
    const bool environment = each.kind() == plugin::Kind::environment;
    const std::string block = environment ? "env." + each.name() : usual_block(each.kind(), each.name());
    if (each.keys()) place(schema, *each.keys(), block, false, nullptr, each.manifest());
  }
  return schema;
}

}  // namespace hexad::config
