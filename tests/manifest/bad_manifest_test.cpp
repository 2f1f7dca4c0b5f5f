// What a manifest can have wrong about the configuration of its plugin: each is refused when a run chooses the plugin,
// with file, key and rule, and no code is needed to tell.
#include "core/config/check.hpp"
#include "core/manifest/discovery.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using namespace plugin_test;

namespace {

// The manifest of a backend `mine` whose `config` is this text, and no library beside it.
class Manifest {
 public:
  explicit Manifest(const std::string& config) {
    path_ = folder_.write_manifest(folder_.path() / "libmine.so", "mine", {{"kind", "backend"}, {"config", "CONFIG"}});
    std::string text = read_text(path_);
    text.replace(text.find("\"CONFIG\""), 8, config);
    std::ofstream(path_) << text;
  }
  const fs::path& path() const { return path_; }

  // What is said of a run that chooses the plugin.
  std::string said() const {
    const fs::path file = folder_.path() / "a.yaml";
    std::ofstream(file) << "policy: {model_name: m, backend: mine}\ndata: {train: {dataset_name: arithmetic}}\n"
                           "grpo: {num_prompts_per_step: 32}\nplugins:\n  paths: ["
                        << folder_.path().string() << "]\n";
    std::string text;
    for (const config::Problem& problem : config::check(config::load_with_defaults(file)))
      text += problem.text() + "\n";
    return text;
  }
  // Why the plugin is not found.
  std::string not_found() const {
    plugin::Options options;
    options.paths = {folder_.path()};
    return error_of([&] { plugin::find_plugin(options, plugin::Kind::backend, "mine"); });
  }

 private:
  PluginFolder folder_;
  fs::path path_;
};

// A declaration of the section a_cfg with a key `size` of these members, and of more parts.
std::string with_size(const std::string& members, const std::string& parts = "") {
  return R"({"keys": {"a_cfg": {"type": "map"}, "a_cfg.size": )" + members + "}" + parts + "}";
}

const std::string kSize = R"({"type": "int", "default": 1, "min": 1})";

void check_refused(const std::string& config, const std::string& words) {
  const Manifest manifest(config);
  const std::string said = manifest.said(), wanted = manifest.path().string() + ": " + words;
  CHECK_MESSAGE(contains(said, wanted), "got: " << said << "\nwanted: " << wanted);
  CHECK(contains(said, "error: policy: "));
}

// The file's own lines are told where the keys are YAML.
void check_refused_yaml(const std::string& yaml, const std::string& words) {
  const Manifest manifest(Json(yaml).dump());
  const std::string said = manifest.said(), wanted = manifest.path().string() + words;
  CHECK_MESSAGE(contains(said, wanted), "got: " << said << "\nwanted: " << wanted);
}

}  // namespace

TEST_CASE("a manifest with the keys of a plugin is valid as JSON and as YAML") {
  CHECK(Manifest(with_size(kSize)).said() == "");
  CHECK(Manifest(Json("keys:\n  a_cfg: {type: map}\n  a_cfg.size: {type: int, default: 1}\n").dump()).said() == "");
  CHECK(Manifest("{}").said() == "");
  CHECK(Manifest("null").said() == "");
}

TEST_CASE("config of a wrong type is refused") {
  for (const char* config : {"[]", "7", "true"})
    check_refused(config, fmt::format("config: got {}, wanted a mapping", config));
  check_refused(R"({"keys": []})", "keys: got [], wanted a mapping");
  check_refused(R"({"keys": {"a_cfg": 1}})", "keys.a_cfg: got 1, wanted a mapping with `type`");
  check_refused(R"({"facts": [1]})", "facts: got [1], wanted a mapping");
  check_refused(R"({"lets": "x"})", "lets: got \"x\", wanted a mapping");
  check_refused(R"({"rules": {}})", "rules: got {}, wanted a list");
  check_refused(R"({"rules": ["x"]})", "rules[0]: got \"x\", wanted a mapping");
  check_refused(R"({"named": "x"})", "named: got \"x\", wanted a list");
  check_refused(R"({"reads": [1]})", "reads: got 1, wanted a text");
  check_refused(R"({"verify_configs": [1]})", "verify_configs: got 1, wanted a mapping from key to value");
  check_refused_yaml("just words", ": just words: no part of a configuration");
  check_refused_yaml("keys: {a: [}", ":1:");
}

TEST_CASE("a key that stands twice is refused") {
  check_refused(R"({"keys": {"a_cfg": {"type": "map"}, "a_cfg": {"type": "map"}}})",
                "key 'a_cfg' stands twice in one object");
  check_refused(with_size(R"({"type": "int", "min": 1, "min": 2})"), "key 'min' stands twice in one object");
  check_refused(R"({"keys": {}, "keys": {}})", "key 'keys' stands twice in one object");
  check_refused_yaml("keys:\n  a: {type: int}\n  a: {type: int}\n", ":3:3: key a is written twice in one mapping");
  check_refused(with_size(R"({"type": "int", "renamed_from": ["a_cfg"]})"),
                "keys.a_cfg.size: renamed_from: a_cfg is a key too");
}

TEST_CASE("members of a key that make no sense are refused") {
  const auto refused = [](const std::string& members, const std::string& words) {
    check_refused(with_size(members), "keys.a_cfg.size: " + words);
  };
  refused(R"({"type": "number"})", "type: got 'number', wanted bool, int, float, text, list, map, null or any");
  refused(R"({"type": "int or"})", "type: got 'int or'");
  refused(R"({"type": 1})", "type: got 1, wanted a text");
  refused(R"({"typ": "int"})", "typ: no member of a key, did you mean 'type'?");
  refused(R"({"type": "int", "meaning": 1})", "meaning: got 1, wanted a text");
  refused(R"({"type": "int", "default": 0, "min": 1})", "default: got int 0, wanted at least 1");
  refused(R"({"type": "int", "default": 9, "max": 8})", "default: got int 9, wanted at most 8");
  refused(R"({"type": "float", "default": 0, "above": 0})", "default: got int 0, wanted above 0");
  refused(R"({"type": "int", "default": "x"})", "default: got text 'x', wanted an integer");
  refused(R"({"type": "text", "default": "c", "choices": ["a", "b"]})", "default: got 'c', wanted one of a, b");
  refused(R"({"type": "map", "default": {"x": 1}})", "default: got {\"x\":1}, wanted a value, or one of first_of");
  refused(R"({"type": "int", "default": {"auto": 1}})", "default: got {\"auto\":1}, wanted first_of with else");
  refused(R"({"type": "int", "default": {"auto": "x", "model": "y"}})",
          "default: got {\"auto\":\"x\",\"model\":\"y\"}, wanted one of first_of, model, auto");
  refused(R"({"type": "int", "min": "1"})", "min: got \"1\", wanted a number");
  refused(R"({"type": "int", "min": 1, "above": 0})", "above: min is there too: keep one");
  refused(R"({"type": "text", "max": 1})", "max: is a bound of numbers, and the type has none");
  refused(R"({"type": "text", "choices": "a"})", "choices: got \"a\", wanted a list of texts");
  refused(R"({"type": "text", "read_as": {"text": "a"}})", "read_as: got {\"text\":\"a\"}, wanted {text, from, note}");
  refused(R"({"type": "int", "open": true})", "open: needs type map, got 'int'");
  refused(R"({"type": "int", "optional": 1})", "optional: got 1, wanted true or false");
  refused(R"({"type": "int", "accepted": "a", "refused": "b"})", "accepted, refused, acts and detail_of exclude each");
  refused(R"({"type": "int", "refused": "a", "allowed": 1})", "allowed: got 1, wanted a list of values");
}

TEST_CASE("keys that are not a plugin's to own are refused") {
  const auto key = [](const std::string& path) { return R"({"keys": {")" + path + R"(": {"type": "any"}}})"; };
  for (const std::string path : {"precision", "generation", "plugin_config", "sequence_packing", "optimizer"}) {
    check_refused(key(path),
                  fmt::format("keys.{0}: policy.{0} is a key of the engine's own; a plugin that reads it has "
                              "it in `reads`",
                              path));
  }
  check_refused(key("other.x"), "keys.other.x: stands below other, which is declared nowhere before it");
  check_refused(key("optimizer.kwargs"), "keys.optimizer.kwargs: stands below optimizer, which is declared nowhere");
  for (const std::string path : {"", ".a", "a.", "a..b"})
    check_refused(key(path), fmt::format("keys: '{}' is no path of names with dots between them", path));
  check_refused(R"({"keys": {"a": {"type": "int"}, "a.b": {"type": "int"}}})",
                "keys.a.b: stands below a, which is no map");
}

TEST_CASE("expressions and rules that make no sense are refused") {
  const auto rule = [](const std::string& members) { return with_size(kSize, R"(, "rules": [{)" + members + "}]"); };
  const std::string whole = R"("require": "true", "key": "a_cfg.size", "message": "no")";
  CHECK(Manifest(rule(whole)).said() == "");
  check_refused(rule(R"("require": "1 +", "key": "a_cfg.size", "message": "no")"), "rules[0].require: '1 +': column 4");
  check_refused(rule(whole + R"json(, "when": "size(1)")json"),
                "rules[0].when: 'size(1)': column 1: no function 'size'");
  check_refused(rule(R"("require": "true", "key": "a_cfg.size", "message": "{1 +}")"), "rules[0].message: '{1 +}': ");
  check_refused(rule(whole + R"(, "nearest": {"value": "1"})"),
                "rules[0].nearest: got {\"value\":\"1\"}, wanted {value, most, holds}");
  check_refused(rule(whole + R"(, "severity": "fatal")"), "rules[0]: severity: got \"fatal\", wanted error or notice");
  check_refused(rule(whole + R"(, "wen": "true")"), "rules[0]: 'wen' is no member of a rule, did you mean 'when'?");
  check_refused(rule(R"("require": "true", "key": "a_cfg.size")"), "rules[0]: 'message' is missing");
  check_refused(rule(R"("require": "true", "key": 1, "message": "no")"), "rules[0]: key and message must be texts");
  check_refused(with_size(kSize, R"(, "facts": {"copy_ranks": "lets.x", "packs": "true"})"),
                "facts.copy_ranks: lets.x is not declared before");
  check_refused(with_size(kSize, R"(, "lets": {"a": "lets.b", "b": "1"})"), "lets.a: lets.b is not declared before");
  check_refused(with_size(kSize, R"(, "facts": {"copyranks": "1"})"),
                "facts.copyranks: no fact that the engine asks for, did you mean 'copy_ranks'?");
  check_refused(with_size(kSize, R"(, "select": {"kind": "loss"})"),
                "select: kind: got \"loss\", and the manifest says backend");
  check_refused(with_size(kSize, R"(, "select": {"when": {"a_cfg.on": true}})"),
                "select: a_cfg.on is no key of this plugin");
  check_refused(with_size(kSize, R"(, "select": {"if": {"a_cfg.size": 1}})"),
                "select: got {\"if\":{\"a_cfg.size\":1}}, wanted {kind, when: {key: value}}");
  check_refused(with_size(kSize, R"(, "rulez": [])"), "rulez: no part of a configuration, did you mean 'rules'?");
}

TEST_CASE("what is too large or too deep is refused") {
  check_refused(R"({"rules": )" + std::string(20, '[') + std::string(20, ']') + "}", "nested deeper than 15 levels");
  const auto fact = [](const std::string& text) { return R"({"facts": {"copy_ranks": ")" + text + R"("}})"; };
  check_refused(fact(std::string(2001, '1')), "facts.copy_ranks: '" + std::string(2001, '1') +
                                                  "': column 2001: got 2001 characters, wanted at most 2000");
  check_refused(fact(std::string(70, '(') + "1" + std::string(70, ')')), "facts.copy_ranks: '((((");
  const std::string deep = Manifest(fact(std::string(70, '(') + "1" + std::string(70, ')'))).said();
  CHECK_MESSAGE(contains(deep, "got more than 64 levels, wanted at most 64"), deep);
  std::string sum = "1";
  for (int i = 0; i < 500; ++i) sum += "+1";
  const std::string many = Manifest(fact(sum)).said();
  CHECK_MESSAGE(contains(many, "got more than 500 values and operators, wanted at most 500"), many);
  check_refused_yaml("keys: " + std::string(200, '[') + std::string(200, ']'), ":1:");
  check_refused_yaml("keys: " + std::string(100'000, '['), ":1:");

  // Of a file that is too large, or cannot be taken apart, nothing is read: the plugin is not there.
  const Manifest deepest(std::string(100'000, '['));
  const std::string cut = deepest.not_found();
  CHECK_MESSAGE(contains(cut, "unreadable: " + deepest.path().string() + ": "), cut.substr(0, 1000));
  const Manifest large(Json("# " + std::string(262'144, 'k')).dump());
  const std::string why = large.not_found();
  CHECK_MESSAGE(contains(why, "backend plugin 'mine' not found."), why);
  CHECK_MESSAGE(contains(why, "unreadable: " + large.path().string() + ": 262145 bytes, a manifest has at most 262144"),
                why);
}

TEST_CASE("a manifest that is no JSON, or names a check library wrongly, is refused by its file") {
  const auto why = [](const Json& changes) {
    const PluginFolder folder;
    const fs::path path = folder.write_manifest(folder.path() / "libmine.so", "mine", changes);
    plugin::Options options;
    options.paths = {folder.path()};
    std::string text = error_of([&] { plugin::find_plugin(options, plugin::Kind::loss, "mine"); });
    const std::string file = "unreadable: " + path.string() + ": ";
    CHECK_MESSAGE(contains(text, file), text);
    return text.substr(std::min(text.find(file) + file.size(), text.size()));
  };
  CHECK(why({{"check", "libmine_check.so"}}) == "must be a JSON object, got string");
  CHECK(why({{"check", {{"library", "libmine_check.so"}}}}) == "key 'sha256' is missing");
  CHECK(why({{"check", {{"library", "libmine_check.so"}, {"sha256", "00"}}}}) ==
        "check.sha256 must be 64 lower-case hex digits");
  CHECK(why({{"check", {{"library", "../libmine_check.so"}, {"sha256", std::string(64, '0')}}}}) ==
        "check.library '../libmine_check.so' must be a file name in the manifest's own directory");
}
