// What a plugin reads beside what it declares, and the defaults that its section is filled with.
#include "app/verify/declared_reads.hpp"

#include <deque>

#include "core/config/declaration/section_defaults.hpp"
#include "core/plugin/call.hpp"
#include "core/plugin/host/table.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using namespace plugin_test;
namespace config = hexad::config;

namespace {

config::Declaration declared(const std::string& yaml, Kind kind = Kind::backend) {
  Manifest manifest;
  manifest.kind = kind;
  manifest.name = "toy";
  manifest.config = nlohmann::json(yaml).dump();
  return *config::read_declaration(manifest, "libtoy.hexad.json");
}

Json filled(const std::string& yaml, const char* section) {
  const config::Declaration declaration = declared(yaml);
  const Json once = config::filled_section(declaration, Json::parse(section));
  CHECK(config::filled_section(declaration, once) == once);
  return once;
}

// One create's reads, through the host table as a plugin makes them.
class Create {
 public:
  explicit Create(Json section) : config_("policy", std::move(section)) { config_.record_reads(); }
  void i64(const char* path, int64_t value) { host_->config_i64(call_.handle(), config_.handle(), path, &value); }
  void f64(const char* path, double value) { host_->config_f64(call_.handle(), config_.handle(), path, &value); }
  void flag(const char* path, int32_t value) { host_->config_bool(call_.handle(), config_.handle(), path, &value); }
  void text(const char* path, const char* value) { host_->config_str(call_.handle(), config_.handle(), path, &value); }
  void json(const char* path) {
    const char* out = nullptr;
    host_->config_json(call_.handle(), config_.handle(), path, &out);
  }
  const PluginConfig& config() const { return config_; }

 private:
  const hexad_host* host_ = host_table(nullptr);
  CallContext context_;
  Call call_{context_, "backend 'toy'"};
  PluginConfig config_;
};

// "rule: text" of each finding that one create with the defaults gives.
std::vector<std::string> found(const std::string& yaml, const std::function<void(Create&)>& reads,
                               const char* section = "{}", Kind kind = Kind::backend, Unread unread = Unread::ignore) {
  const config::Declaration declaration = declared(yaml, kind);
  Create create(config::filled_section(declaration, Json::parse(section)));
  reads(create);
  const PluginConfig* const creates[] = {&create.config()};
  std::vector<std::string> lines;
  for (const DeclaredFinding& finding : check_reads(declaration, creates, unread)) {
    CHECK(contains(finding.text, finding.key.empty() ? "the whole section" : finding.key));
    lines.push_back(finding.rule + ": " + finding.key);
  }
  return lines;
}

using Lines = std::vector<std::string>;

const char* const kKeys = R"(
keys:
  cfg: {type: map, meaning: the backend}
  cfg.size: {type: int, default: 2}
  cfg.rate: {type: float, default: 0.1}
  cfg.mode: {type: text, default: fast}
  cfg.on: {type: bool, default: true}
  cfg.limit: {type: float or null, default: null}
  cfg.free: {type: map, open: true, default: {}}
  cfg.items: {type: list, default: []}
  plugin_config.own: {type: int, default: 3}
reads: [precision, optimizer.kwargs, cfg.engines]
)";

}  // namespace

TEST_CASE("reads are recorded with the plugin's own defaults, and only where that was asked for") {
  PluginConfig silent("policy", Json::object());
  double value = 1;
  CallContext context;
  Call call(context, "backend 'toy'");
  host_table(nullptr)->config_f64(call.handle(), silent.handle(), "cfg.rate", &value);
  CHECK(silent.reads().empty());

  Create create(Json::parse(R"({"a": 5})"));
  create.i64("a", 7);
  create.i64("a", 7);
  create.flag("b", 1);
  create.text("c", nullptr);
  create.text("c", "x");
  create.json("d");
  for (int i = 0; i < 1000; ++i) create.i64("seed", i);
  const std::vector<ConfigRead> reads = create.config().reads();
  REQUIRE(reads.size() >= 5);
  CHECK(reads.size() < 20);
  CHECK(reads[0].path == "a");
  CHECK(reads[0].as == ReadAs::i64);
  CHECK(reads[0].otherwise == 7);
  CHECK(reads[1].otherwise == true);
  CHECK(reads[2].otherwise.is_null());
  CHECK(reads[3].otherwise == "x");
  CHECK(reads[4].as == ReadAs::json);
}

TEST_CASE("a plugin that reads what it declares has no findings") {
  const auto all = [](Create& create) {
    create.i64("cfg.size", 2);
    create.f64("cfg.rate", 0.1);
    create.text("cfg.mode", "fast");
    create.flag("cfg.on", 1);
    create.json("cfg.limit");
    create.f64("cfg.limit", 4);
    create.json("cfg.free");
    create.i64("cfg.free.x.y", 1);
    create.json("cfg.items");
    create.i64("cfg.items.0.n", 1);
    create.i64("own", 3);
    create.text("precision", "bfloat16");
    create.json("optimizer.kwargs");
    create.f64("optimizer.kwargs.lr", 1);
    create.i64("cfg.engines", 1);
    create.text("model_name", "");  // the engine's
  };
  CHECK(found(kKeys, all, "{}", Kind::backend, Unread::fail) == Lines{});
}

TEST_CASE("a key that is read and not declared") {
  const auto reads = [](Create& create) {
    create.i64("cfg.sise", 2);
    create.json("optimizer");
    create.i64("replica_index", 0);
  };
  const Lines undeclared = {"undeclared key: cfg.sise", "undeclared key: optimizer", "undeclared key: replica_index"};
  CHECK(found(kKeys, reads) == undeclared);
  CHECK(found(kKeys, reads, "{}", Kind::generator) == Lines{undeclared[0], undeclared[1]});
  CHECK(found("{}", [](Create& create) { create.i64("x", 1), create.json("x"), create.json("plugin_config"); }) ==
        Lines{"undeclared key: plugin_config", "undeclared key: x"});
}

TEST_CASE("a default that differs at a typed read") {
  const auto one = [](const char* path, auto read) {
    return found(kKeys, [&](Create& create) { read(create, path); });
  };
  const auto i64 = [](int64_t value) { return [=](Create& create, const char* path) { create.i64(path, value); }; };
  const auto f64 = [](double value) { return [=](Create& create, const char* path) { create.f64(path, value); }; };
  CHECK(one("cfg.size", i64(3)) == Lines{"declared default: cfg.size"});
  CHECK(one("own", i64(4)) == Lines{"declared default: own"});
  CHECK(one("cfg.size", f64(2)) == Lines{});             // by value
  CHECK(one("cfg.rate", f64(double{0.1f})) == Lines{});  // as the plugin's float has it
  CHECK(one("cfg.rate", f64(0.11)) == Lines{"declared default: cfg.rate"});
  CHECK(one("cfg.limit", f64(0)) == Lines{});  // null
  CHECK(found(kKeys, [](Create& create) { create.text("cfg.mode", "slow"); }) == Lines{"declared default: cfg.mode"});
  CHECK(found(kKeys, [](Create& create) { create.flag("cfg.on", 0); }) == Lines{"declared default: cfg.on"});
  // Config::find: there is no default.
  CHECK(found(kKeys, [](Create& create) { create.i64("cfg.size", 0), create.i64("cfg.size", 1); }) == Lines{});
  CHECK(found(kKeys, [](Create& create) { create.text("cfg.mode", nullptr); }) == Lines{});
  // That it is written changes nothing.
  CHECK(found(
            kKeys, [](Create& create) { create.i64("cfg.size", 3); }, R"({"cfg": {"size": 3}})") ==
        Lines{"declared default: cfg.size"});
}

TEST_CASE("defaults that refer to other keys are compared with what these have, and those beyond the section are not") {
  const char* const yaml = R"(
keys:
  cfg: {type: map}
  cfg.a: {type: int, default: 1}
  cfg.sibling: {type: int, default: "${.a}"}
  cfg.other: {type: int, default: "${top}"}
  top: {type: int, default: 4}
  cfg.first: {type: float, default: {first_of: [optimizer.betas.1, optimizer.lr], else: 0.5}}
  cfg.run: {type: text, default: "${run.policy.precision}"}
  cfg.auto: {type: int, default: {auto: as it fits}}
  cfg.model: {type: int, default: {model: num_hidden_layers}}
  cfg.nothing: {type: int}
)";
  const auto reads = [](int64_t sibling, int64_t other, double first) {
    return [=](Create& create) {
      create.i64("cfg.sibling", sibling);
      create.i64("cfg.other", other);
      create.f64("cfg.first", first);
      for (const char* path : {"cfg.run", "cfg.auto", "cfg.model", "cfg.nothing"}) create.i64(path, 77);
    };
  };
  CHECK(found(yaml, reads(1, 4, 0.5)) == Lines{});
  const char* const section = R"({"cfg": {"a": 9}, "top": 8, "optimizer": {"betas": [0.1, 0.2]}})";
  CHECK(found(yaml, reads(9, 8, 0.2), section) == Lines{});
  CHECK(found(yaml, reads(1, 4, 0.5), section) ==
        Lines{"declared default: cfg.first", "declared default: cfg.other", "declared default: cfg.sibling"});
}

TEST_CASE("JSON of a section whose keys are declared") {
  const auto whole = [](const char* path) { return found(kKeys, [&](Create& create) { create.json(path); }); };
  CHECK(whole("") == Lines{"section as JSON: "});
  CHECK(whole("cfg") == Lines{"section as JSON: cfg"});
  CHECK(whole("plugin_config") == Lines{"section as JSON: plugin_config"});
  CHECK(whole("cfg.free") == Lines{});
  CHECK(whole("cfg.size") == Lines{});
  CHECK(found(
            "keys: {m: {type: map, open: true}, m.known: {type: int}}", [](Create& create) { create.json("m"); }, "{}",
            Kind::loss, Unread::warn) == Lines{});  // and known is read
}

TEST_CASE("a declared key that nothing reads") {
  const char* const yaml = R"(
select: {kind: backend, when: {cfg.enabled: true}}
keys:
  cfg: {type: map}
  cfg.enabled: {type: bool, default: true}
  cfg.size: {type: int, default: 2}
  cfg.gone: {type: int, accepted: there is none}
  cfg.lora: {type: map, refused: LoRA}
  cfg.lora.rank: {type: int, default: 8}
  cfg.free: {type: map, open: true}
  cfg.lr: {type: float, default: 0.1}
  cfg.tp: {type: int, default: 1}
  plugin_config.own: {type: int}
lets: {rate: cfg.lr * 2}
facts: {learning_rate: lets.rate, copy_ranks: cfg.tp}
)";
  const auto unread = [&](const std::function<void(Create&)>& reads) {
    return found(yaml, reads, "{}", Kind::backend, Unread::warn);
  };
  CHECK(unread([](Create&) {}) ==
        Lines{"unread key: cfg.size", "unread key: cfg.free", "unread key: cfg.tp", "unread key: plugin_config.own"});
  CHECK(unread([](Create& create) {
          create.i64("cfg.size", 2), create.i64("cfg.tp", 1), create.i64("cfg.free.x", 1), create.json("own");
        }) == Lines{});

  const config::Declaration declaration = declared(yaml);
  std::deque<Create> creates;
  for (const char* path : {"cfg.size", "cfg.tp", "cfg.free"}) creates.emplace_back(Json::object()).i64(path, 1);
  std::vector<const PluginConfig*> configs;
  for (const Create& create : creates) configs.push_back(&create.config());
  const auto rules = [&](Unread how) {
    Lines lines;
    for (const DeclaredFinding& finding : check_reads(declaration, configs, how)) {
      if (finding.rule == kUnreadKey) lines.push_back((finding.warning ? "warning " : "error ") + finding.key);
    }
    return lines;
  };
  CHECK(rules(Unread::warn) == Lines{"warning plugin_config.own"});  // of all creates together
  CHECK(rules(Unread::fail) == Lines{"error plugin_config.own"});
  CHECK(rules(Unread::ignore) == Lines{});
}

TEST_CASE("a section is filled with the declared defaults") {
  CHECK(filled(kKeys, "{}") ==
        Json::parse(
            R"({"cfg": {"size": 2, "rate": 0.1, "mode": "fast", "on": true, "limit": null, "free": {}, "items": []},
                        "plugin_config": {"own": 3}})"));
  CHECK(filled(kKeys, R"({"cfg": null, "plugin_config": {"own": 5, "x": 1}, "y": 2})") ==
        Json::parse(R"({"cfg": null, "plugin_config": {"own": 5, "x": 1}, "y": 2})"));
  CHECK(filled(kKeys, R"({"cfg": "no map"})").at("cfg") == "no map");
  CHECK(filled(kKeys, "[]") == Json::array());
  const char* const optional = R"(
select: {when: {m.enabled: true}}
keys:
  m: {type: map}
  m.enabled: {type: bool, default: true}
  m.late: {type: int, default: "${m.early}"}
  m.early: {type: int, default: 1}
  m.round: {type: int, default: "${m.trip}"}
  m.trip: {type: int, default: "${m.round}"}
  m.beyond: {type: int, default: "${..x}"}
  m.far: {type: int, default: "${...x}"}
  m.words: {type: text, default: "a${m.early}"}
  m.opt: {type: map, optional: true}
  m.opt.deep: {type: map}
  m.opt.deep.x: {type: int, default: 6}
  gone: {type: int, default: 1, accepted: there is none}
)";
  CHECK(filled(optional, R"({"x": 3})") == Json::parse(R"({"x": 3, "m": {"early": 1, "beyond": 3, "late": 1}})"));
  CHECK(filled(optional, R"({"m": {"opt": {}}})").at("m").at("opt") == Json::parse(R"({"deep": {"x": 6}})"));
}

TEST_CASE("keys of plugin_config that have their default need not be read") {
  const config::Declaration declaration =
      declared("keys: {plugin_config.a: {type: int, default: 1}, plugin_config.b: {type: list, default: [1, 2]}}");
  PluginConfig written("loss_fn", Json::parse(R"({"plugin_config": {"a": 2, "c": 3}})"));
  written.fill(declaration);
  CHECK(written.unread_keys("toy") ==
        Lines{"loss_fn.plugin_config.a is not used by 'toy'.", "loss_fn.plugin_config.c is not used by 'toy'."});
  PluginConfig recorded("loss_fn", Json::parse(R"({"plugin_config": {"a": 1}})"));
  recorded.fill(declaration);
  CHECK(recorded.unread_keys("toy") == Lines{});
  // Filled by the configuration, which has a place for every key.
  const PluginConfig of_a_run("loss_fn", Json::parse(R"({"plugin_config": {"a": 1, "b": [1, 2], "c": 3}})"),
                              [](std::string_view path) { return path.ends_with(".c") ? "run.yaml:2:1" : "default"; });
  CHECK(of_a_run.unread_keys("toy") == Lines{"run.yaml:2:1: loss_fn.plugin_config.c is not used by 'toy'."});
}

TEST_CASE("sdk/ABI.md has the table of what the engine adds to a section") {
  const char* root = std::getenv("HEXAD_SOURCE_DIR");
  const std::string page = read_text(fs::path(root ? root : ".") / "sdk/ABI.md");
  std::string table = "| key | type | of | meaning |\n|---|---|---|---|\n";
  for (const HostKey& key : host_keys()) {
    std::string kinds;
    for (const Kind kind : key.kinds) kinds += (kinds.empty() ? "" : ", ") + std::string(kind_name(kind));
    table += fmt::format("| `{}` | {} | {} | {} |\n", key.name, key.type, kinds, key.meaning);
  }
  CHECK_MESSAGE(contains(page, table + "\n"), table);
}
