// Where `config show --origin` says that values come from.
#include "app/config/origin.hpp"

#include "app/config/commands.hpp"
#include "lib/yaml/file.hpp"
#include "tests/config/support.hpp"

using namespace hexad::config;
using config_test::check_says;
using config_test::Files;
using Json = nlohmann::ordered_json;

namespace {

const char* const kProbe = R"({
  "format": 1, "kind": "backend", "name": "probe", "version": "1.0.0", "library": "libprobe.so",
  "abi": {"major": 1, "min_host_minor": 0}, "arch": "x86_64-linux-gnu",
  "config": {"keys": {
    "probe_cfg": {"type": "map", "meaning": "the probe"},
    "probe_cfg.clip": {"type": "float or null", "default": "${max_grad_norm}", "meaning": "norm"},
    "probe_cfg.lr": {"type": "float", "default": 5e-06, "meaning": "learning rate"},
    "probe_cfg.min_lr": {"type": "float", "default": {"auto": "a tenth of lr"}, "meaning": "lowest rate"},
    "probe_cfg.names": {"type": "list of text", "default": ["x", "z"], "meaning": "names"},
    "probe_cfg.layout": {"type": "map or null", "optional": true, "meaning": "layout"},
    "probe_cfg.layout.order": {"type": "text", "default": {"auto": "as the ranks are"}, "meaning": "order"}
  }}
})";

// A config of the backend above that inherits from another file.
struct Probe {
  const Files files{{{"base.yaml", "policy:\n  model_name: m\n  backend: probe\n  max_grad_norm: 2.5\n"},
                     {"a.yaml",
                      "defaults: base.yaml\ndata: {train: {dataset_name: arithmetic}}\ngrpo:\n"
                      "  num_prompts_per_step: 32\nlogger:\n  profile_steps: [3, 5]\n"},
                     {"plugins/libprobe.hexad.json", kProbe}}};

  std::string show(config_test::Overrides overrides, bool json, bool origins) const {
    overrides.push_back(fmt::format("plugins.paths=[{}]", (files / "plugins").string()));
    std::ostringstream out, errors;
    const int code = config_show(files / "a.yaml", overrides, json, out, errors, origins);
    CHECK_MESSAGE(code == 0, errors.str());
    return out.str();
  }
  std::string in(const std::string& name) const { return (files / name).string(); }
};

}  // namespace

TEST_CASE("each value has the file, override or default that it comes from behind it") {
  const Probe probe;
  const std::string text = probe.show({"grpo.seed=17"}, false, true);
  check_says(text, "\n  num_prompts_per_step: 32  # " + probe.in("a.yaml") + ":4:");
  check_says(text, "\n  model_name: m  # " + probe.in("base.yaml") + ":2:");
  check_says(text, "\n  seed: 17  # override grpo.seed=17\n");
  check_says(text, "\n  num_generations_per_prompt: 16  # default\n");
  const std::string plugin = "default of probe (" + probe.in("plugins/libprobe.hexad.json") + ")\n";
  check_says(text, "\n    lr: 5e-06  # " + plugin);
  check_says(text, "\n    clip: 2.5  # " + plugin);  // what stands there is a default, whatever it refers to
  check_says(text, "\n    names:\n      - x  # " + plugin + "      - z  # " + plugin);
  check_says(text, "\n  profile_steps:\n    - 3  # " + probe.in("a.yaml") + ":6:");
  check_says(text, "\n    # min_lr: auto: a tenth of lr\n");
}

TEST_CASE("the origins as JSON: one object a leaf") {
  const Probe probe;
  const Json list = Json::parse(probe.show({"++policy.probe_cfg.lr=0.5"}, true, true));
  const auto entry = [&](const std::string& key) {
    for (const Json& each : list) {
      if (each.at("key") == key) return each;
    }
    return Json();
  };
  CHECK(entry("policy.probe_cfg.lr") ==
        Json{{"key", "policy.probe_cfg.lr"}, {"value", 0.5}, {"origin", "override ++policy.probe_cfg.lr=0.5"}});
  CHECK(entry("policy.probe_cfg.min_lr").at("value").is_null());
  CHECK(entry("policy.probe_cfg.min_lr").at("origin") == "auto: a tenth of lr");
  CHECK(entry("logger.profile_steps.1").at("value") == 5);
  CHECK(entry("grpo.seed").at("origin") == "default");
  CHECK(entry("policy.probe_cfg").is_null());  // no leaf
}

TEST_CASE("an infinite number is no null in JSON") {
  const Probe probe;
  const std::string overrides = "++policy.probe_cfg.lr=-inf";
  CHECK(Json::parse(probe.show({overrides}, true, false)).at("policy").at("probe_cfg").at("lr") == "-inf");
  const Json list = Json::parse(probe.show({overrides}, true, true));
  CHECK(std::ranges::any_of(
      list, [](const Json& each) { return each.at("key") == "policy.probe_cfg.lr" && each.at("value") == "-inf"; }));
}

TEST_CASE("a plain show reads back to the same values, and names keys that are chosen later") {
  const Probe probe;
  const std::string text = probe.show({}, false, false);
  check_says(text, "\n    # min_lr: auto: a tenth of lr\n");
  CHECK(text.find("as the ranks are") == std::string::npos);  // its section is not written
  CHECK(text.find("  # ") == text.find("  # min_lr"));
  const Json shown = Json::parse(probe.show({}, true, false));
  CHECK(hexad::yaml::read_text(text, "shown").to_json() == shown);
  CHECK(hexad::yaml::read_text(probe.show({}, false, true), "shown").to_json() == shown);
  CHECK(!shown.at("policy").at("probe_cfg").contains("min_lr"));

  CHECK(probe.show({"++policy.probe_cfg.min_lr=0.1"}, false, false).find("auto: a tenth") == std::string::npos);
  check_says(probe.show({"++policy.probe_cfg.layout={}"}, false, true),
             "\n    layout: {}  # override ++policy.probe_cfg.layout={}\n      # order: auto: as the ranks are\n");
}

TEST_CASE("an invalid config is listed, and nothing is shown") {
  const Files files("a.yaml", config_test::kValid);
  std::ostringstream out, errors;
  CHECK(config_show(files / "a.yaml", {"grpo.seed=abc"}, false, out, errors, true) == 2);
  CHECK(out.str().empty());
  check_says(errors.str(), "grpo.seed: got text 'abc'");
}
