// Whose section it is: of the plugin that is chosen, of one that is not, of two at once.
#include "core/config/declaration/run_schema.hpp"
#include "tests/config/support.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace config_test;
using namespace hexad::config;
using hexad::plugin::Kind;
using plugin_test::Json;
using plugin_test::PluginFolder;

namespace {

// A declaration of one section with a switch and a size, and of whatever else.
Json section(const std::string& name, const Json& keys = Json::object()) {
  Json config = {{"select", {{"when", {{name + ".enabled", true}}}}},
                 {"keys",
                  {{name, {{"type", "map or null"}, {"meaning", "a stranger's section"}}},
                   {name + ".enabled", {{"type", "bool"}, {"default", false}, {"meaning", "train with it"}}},
                   {name + ".size", {{"type", "int"}, {"default", 1}, {"min", 1}, {"meaning", "how many"}}}}}};
  config["keys"].update(keys);
  return config;
}

// Plugins of which there is only a manifest, in a folder of the configuration's plugins.paths.
class Strangers {
 public:
  // Returns the manifest.
  std::string add(const std::string& name, const Json& config, const char* kind = "backend") const {
    const plugin_test::fs::path library = folder_.path() / ("lib" + name + ".so");
    return folder_.write_manifest(library, name, {{"kind", kind}, {"config", config}}).string();
  }
  Resolved resolve(const Overrides& overrides) const { return resolve_text(with_paths(overrides)); }
  std::string error(const Overrides& overrides) const { return resolve_error(with_paths(overrides)); }
  hexad::yaml::Node root() const { return load_text("plugins: {paths: [" + folder_.path().string() + "]}\n"); }

 private:
  Overrides with_paths(Overrides overrides) const {
    overrides.insert(overrides.begin(), "++plugins.paths=[" + folder_.path().string() + "]");
    return overrides;
  }

  PluginFolder folder_;
};

const std::string kMegatron = "++policy.megatron_cfg.", kTypo = "tensor_model_paralel_size=2";

}  // namespace

TEST_CASE("two backends that one switch chooses are refused by the files of both") {
  const Strangers strangers;
  const std::string first = strangers.add("first", section("shared_cfg")),
                    second = strangers.add("second", section("shared_cfg"));
  const std::string on = "++policy.shared_cfg.enabled=true";
  check_says(strangers.error({on}), "error: policy.shared_cfg.enabled: it chooses the plugins of " + first + " and " +
                                        second + ": name one of the two in policy.backend");
  CHECK(strangers.error({on, "++policy.backend=first"}) == "");
  CHECK(strangers.error({on, "++policy.backend=second", "++policy.shared_cfg.size=2"}) == "");
}

TEST_CASE("two chosen plugins that declare one key in the same block are refused by the files of both") {
  const Strangers strangers;
  const std::string first = strangers.add("first", section("shared_cfg")),
                    second = strangers.add("second", section("shared_cfg"));
  const hexad::yaml::Node root = strangers.root();
  const auto said = [&](const std::string& block) {
    Selection selection = select_plugins(root, std::make_shared<Catalog>(root));
    selection.problems.clear();
    const auto chosen = [&](const std::string& name, const std::string& where) {
      return Chosen{Kind::backend, where, name, selection.catalog->find(Kind::backend, name)};
    };
    selection.backend = chosen("first", "policy");
    selection.environments = {chosen("second", block)};
    run_schema(selection);
    std::vector<std::string> texts;
    for (const Problem& problem : selection.problems) texts.push_back(problem.text());
    return texts;
  };
  const std::string both = ": both " + first + " and " + second + " declare it: choose one of the two plugins";
  CHECK(said("policy") == std::vector<std::string>{"error: policy.shared_cfg" + both,
                                                   "error: policy.shared_cfg.enabled" + both,
                                                   "error: policy.shared_cfg.size" + both});
  CHECK(said("critic").empty());  // the same section in a block of its own
}

TEST_CASE("a section belongs to the plugin that is chosen, whoever else declares it") {
  const Strangers strangers;
  strangers.add("mine", section("megatron_cfg", {{"other_cfg", {{"type", "map"}, {"meaning", "x"}}}}));
  strangers.add("third", section("other_cfg"));
  const std::string mine = "++policy.backend=mine";
  const Resolved resolved = strangers.resolve({mine, kMegatron + "size=3"});
  CHECK(!has_notice(resolved, "policy.megatron_cfg", "not read"));
  CHECK(resolved.root.as_int("policy.megatron_cfg.size") == 3);
  CHECK(!resolved.root.find("policy.megatron_cfg.tensor_model_parallel_size"));
  check_says(strangers.error({mine, kMegatron + "size=0"}), "policy.megatron_cfg.size: got int 0, wanted at least 1");
  check_says(strangers.error({mine, kMegatron + "tensor_model_parallel_size=2"}),
             "policy.megatron_cfg.tensor_model_parallel_size: unknown key");
  // And with a section that no chosen plugin has, of one that also declares theirs.
  const Overrides both = {mine, "++policy.other_cfg={}", kMegatron + "tensor_model_parallel_size=2"};
  check_says(strangers.error(both), "policy.megatron_cfg.tensor_model_parallel_size: unknown key");
  CHECK(!has_notice(strangers.resolve({mine, "++policy.other_cfg={}"}), "policy.other_cfg", "not read"));
  // Of its keys a stranger's defaults alone are filled in; the installed one is not changed by it.
  check_says(strangers.error({"++policy.backend=megatron", kMegatron + "size=3"}),
             "policy.megatron_cfg.size: unknown key");
}

TEST_CASE("the section of a plugin that is not chosen is told of, and a typo in it stays an error") {
  const Resolved resolved =
      resolve_text({kMegatron + "tensor_model_parallel_size=2", "++policy.generation.vllm_cfg.tensor_parallel_size=2"});
  CHECK(has_notice(resolved, "policy.megatron_cfg", "not read: dtensor trains"));
  CHECK(has_notice(resolved, "policy.generation.vllm_cfg", "not read: native generates"));
  check_says(resolve_error({kMegatron + kTypo}),
             "error: policy.megatron_cfg.tensor_model_paralel_size: unknown key; did you mean "
             "policy.megatron_cfg.tensor_model_parallel_size?");
  check_says(resolve_error({"++policy.generation.vllm_cfg.tensor_paralel_size=2"}),
             "error: policy.generation.vllm_cfg.tensor_paralel_size: unknown key; did you mean "
             "policy.generation.vllm_cfg.tensor_parallel_size?");
  // No line where all that stands there is the switch, and off.
  CHECK(!has_notice(resolve_text({kMegatron + "enabled=false"}), "policy.megatron_cfg", "not read"));

  const Strangers strangers;
  strangers.add("mine", section("my_cfg"));
  strangers.add("my_loss", Json{{"keys", {{"my_loss_cfg", {{"type", "map"}}}, {"my_loss_cfg.x", {{"type", "int"}}}}}},
                "loss");
  const Resolved asleep = strangers.resolve({"++policy.my_cfg.size=2", "++loss_fn.my_loss_cfg.x=2"});
  CHECK(has_notice(asleep, "policy.my_cfg", "not read: dtensor trains"));
  CHECK(has_notice(asleep, "loss_fn.my_loss_cfg", "not read: clipped_pg is the loss"));
  check_says(strangers.error({"++policy.my_cfg.sise=2"}), "policy.my_cfg.sise: unknown key; did you mean");
  check_says(strangers.error({"++loss_fn.my_loss_cfg.y=2"}), "loss_fn.my_loss_cfg.y: unknown key");
}

TEST_CASE("two switches that are on are refused by the keys of both") {
  check_says(resolve_error({kMegatron + "enabled=true", "++policy.dtensor_cfg.enabled=true"}),
             "error: policy.megatron_cfg.enabled: policy.dtensor_cfg.enabled is true as well; one of them trains: set "
             "the other to false");
  const Strangers strangers;
  strangers.add("mine", section("my_cfg"));
  const std::string on = "++policy.my_cfg.enabled=true", also = "++policy.dtensor_cfg.enabled=";
  CHECK(strangers.error({on}) == "");
  CHECK(strangers.error({on, also + "false"}) == "");
  const std::string two = strangers.error({on, also + "true"});
  check_says(two, "policy.my_cfg.enabled");
  check_says(two, "policy.dtensor_cfg.enabled");
  check_says(two, "is true as well; one of them trains: set the other to false");
}

TEST_CASE("a section of env without a kind is of the plugin of its name or type, and holds what that declares") {
  const Strangers strangers;
  const Json keys = {{"speed", {{"type", "int"}, {"default", 3}, {"min", 1}, {"meaning", "how fast"}}}};
  strangers.add("judge", {{"keys", keys}}, "environment");
  const auto speed = [&](const std::string& section, const Overrides& overrides) {
    return strangers.resolve(overrides).root.as_int("env." + section + ".speed");
  };
  CHECK(speed("judge", {"++env.judge={}"}) == 3);
  CHECK(speed("mine", {"++env.mine={type: judge, speed: 2}"}) == 2);
  CHECK(speed("mine", {"++env.mine={plugin: judge}"}) == 3);
  check_says(strangers.error({"++env.judge.speeed=2"}), "env.judge.speeed: unknown key");
  check_says(strangers.error({"++env.mine={type: judge, speed: 0}"}), "env.mine.speed: got int 0, wanted at least 1");
  // What has another kind is none of it.
  CHECK(strangers.error({"++env.judge={command: [sh], speeed: 2}"}) == "");
  CHECK(strangers.error({"++env.judge={rewards: [{name: judge}]}"}) == "");
  CHECK(strangers.error({"++env.judge={type: length, speeed: 2}"}) == "");
}
