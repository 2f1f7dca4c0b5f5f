// The conformance kit on losses that declare their keys: a good one, and one that is broken in each way.
#include "app/verify/verify.hpp"

#include <sys/wait.h>

#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using namespace plugin_test;

namespace {

// A loss whose create reads scale with the default 1, and what `more` reads.
fs::path compile_loss(const PluginFolder& folder, const std::string& more) {
  const std::string reads =
      "double scale = 1; int64_t n = 0; const char* text = 0; hexad_code c = host->config_f64(call, config, \"scale\", "
      "&scale); if (c) return c; (void)n; (void)text; ";
  const std::string flags = "-Wl,-z,now -Wl,--build-id '-DCREATE_BODY=" + reads + more + "'";
  return folder.compile("toy", flags);
}

// Level 3 of it, with the level before loading.
VerifyReport verified(const std::string& more, const Json& config) {
  const PluginFolder folder;
  const fs::path library = compile_loss(folder, more);
  folder.write_manifest(library, "toy", config.is_null() ? Json::object() : Json{{"config", config}});
  VerifyOptions options;
  options.levels = {0, 3};
  options.timeout_s = 20;
  return verify_plugin(library.string(), options);
}

struct Said {
  int code;
  std::string text;
};

// What an engine says of it as of a plugin of its own: the program, in a folder where this loss lies beside it.
Said verified_as_own(const std::string& more, const Json& config) {
  const PluginFolder folder;
  const char* build = std::getenv("HEXAD_BUILD_DIR");
  const fs::path program = folder.path() / "bin/hexad", plugins = folder.path() / "lib/hexad/plugins";
  fs::create_directories(program.parent_path());
  fs::create_directories(plugins);
  fs::copy_file(fs::absolute(build ? build : "build/dev") / "bin/hexad", program);
  const fs::path compiled = compile_loss(folder, more), library = plugins / compiled.filename();
  fs::rename(compiled, library);
  folder.write_manifest(library, "toy", {{"config", config}});
  const fs::path said = folder.path() / "said";
  const std::string command = fmt::format("{} plugin verify toy --level 3 > {} 2>&1", program.string(), said.string());
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(said)};
}

std::string lines(const VerifyReport& report) {
  std::string text;
  for (const LevelReport& level : report.levels) {
    for (const auto& finding : level.findings)
      text +=
          fmt::format("L{} {}{}: {}\n", level.level, finding.warning ? "warning: " : "", finding.check, finding.text);
  }
  return text;
}

const Json kScale = {{"type", "float"}, {"default", 1}, {"meaning", "of the sum"}};

Json keys(const Json& more = Json::object(), const Json& scale = kScale) {
  Json config = {{"keys", {{"plugin_config.scale", scale}}}};
  config["keys"].merge_patch(more);
  return config;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a loss that declares what it reads has no finding, and one that declares nothing a line") {
  const VerifyReport declared = verified("", keys());
  CHECK_MESSAGE(lines(declared) == "", lines(declared));
  REQUIRE(declared.levels.size() == 2);
  CHECK(declared.levels[1].note == "");
  const VerifyReport silent = verified("", nullptr);
  CHECK_MESSAGE(lines(silent) == "", lines(silent));
  CHECK(silent.levels[1].note == "keys are not declared");
  CHECK(silent.levels[1].checks < declared.levels[1].checks);
}

TEST_CASE("every difference between what is declared and what is read is caught with its line") {
  struct Broken {
    const char* what;
    std::string more;
    Json config;
    const char* line;
  };
  Json failing = keys();
  failing["verify_configs"] =
      Json::parse(R"([{"plugin_config.scale": 7}, {"plugin_config.scale": 1, "plugin_config.scale.x": 1}])");
  const Json window = {{"plugin_config.window", {{"type", "int"}, {"default", 8}}}};
  const Json limits = {{"limits", {{"type", "map"}}}, {"limits.low", {{"type", "float"}, {"default", 0.5}}}};
  const std::vector<Broken> corpus = {
      {"reads a key that is not declared", "c = host->config_i64(call, config, \"scales\", &n); if (c) return c;",
       keys(),
       "L3 undeclared key: create reads scales as a whole number, and the manifest has it neither in keys nor in "
       "reads, "
       "did you mean 'scale'?"},
      {"has another default", "", keys(Json::object(), {{"type", "float"}, {"default", 2}}),
       "L3 declared default: create reads scale with the default 1.0, and the manifest declares 2"},
      {"reads a section whose keys are declared as JSON",
       "c = host->config_json(call, config, \"limits\", &text); if (c) return c;", keys(limits),
       "L3 section as JSON: create reads limits as JSON, whose keys are declared"},
      {"declares a key that it does not read", "", keys(window),
       "L3 warning: unread key: plugin_config.window is declared, and create reads it under none of the "
       "configurations"},
      {"cannot be created under one of its configurations",
       "if (scale == 7) return host->set_error(call, HEXAD_INVALID_ARGUMENT, \"no seven\", UINT64_MAX);", failing,
       "L3 verify_configs: {\"plugin_config.scale\":7}: create failed: no seven; "
       "{\"plugin_config.scale\":1,\"plugin_config.scale.x\":1}: plugin_config.scale.x stands below a key that is no "
       "map"},
      {"has a declaration that cannot be read", "", keys(Json::object(), {{"type", "number"}}),
       "keys.plugin_config.scale: type: got 'number'"},
  };
  for (const Broken& broken : corpus) {
    INFO(broken.what);
    const VerifyReport report = verified(broken.more, broken.config);
    CHECK_MESSAGE(contains(lines(report), broken.line), lines(report));
    const bool warns = std::string(broken.line).starts_with("L3 warning");
    CHECK(report.failed() == !warns);
    CHECK(report.warned());
  }
}

TEST_CASE("a key that is read under one of verify_configs alone is read") {
  const std::string when = "if (scale == 7) { c = host->config_i64(call, config, \"window\", &n); if (c) return c; }";
  Json config = keys({{"plugin_config.window", {{"type", "int"}, {"default", 0}}}});
  CHECK(contains(lines(verified(when, config)), "unread key: plugin_config.window"));
  config["verify_configs"] = Json::parse(R"([{"plugin_config.scale": 7}])");
  const std::string found = lines(verified(when, config));
  CHECK_MESSAGE(found == "", found);
}

TEST_CASE("a declared key that a plugin of the engine's own never reads is an error, with verify_configs and without") {
  const Json window = {{"plugin_config.window", {{"type", "int"}, {"default", 8}}}};
  Json config = keys(window);
  const auto fails = [&] {
    const Said said = verified_as_own("", config);
    CHECK_MESSAGE(said.code == 1, said.text);
    CHECK_MESSAGE(contains(said.text, "L3 lifecycle  FAILED"), said.text);
    CHECK_MESSAGE(contains(said.text, "\n   unread key: plugin_config.window is declared"), said.text);
  };
  fails();
  config["verify_configs"] = Json::parse(R"([{"plugin_config.scale": 7}])");
  fails();
  const Said read =
      verified_as_own("n = 8; c = host->config_i64(call, config, \"window\", &n); if (c) return c;", keys(window));
  CHECK_MESSAGE(read.code == 0, read.text);
}

TEST_SUITE_END();
