// A backend of someone else's: its keys, its rules and its check library, whatever that does, without a byte of its
// code.
#include "core/config/check.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using namespace plugin_test;

namespace {

const Json kKeys = {
    {"my_cfg", {{"type", "map or null"}, {"meaning", "a stranger's section"}}},
    {"my_cfg.ranks", {{"type", "int"}, {"default", 1}, {"min", 1}, {"meaning", "ranks that share a copy"}}},
    {"my_cfg.mode", {{"type", "text"}, {"default", "fast"}, {"choices", {"fast", "exact"}}, {"meaning", "how"}}},
    {"my_cfg.old_name", {{"type", "bool"}, {"default", false}, {"renamed_from", {"my_cfg.older"}}, {"meaning", "x"}}}};

Json declaration(const Json& more = Json::object()) {
  Json config = {
      {"keys", kKeys},
      {"facts", {{"copy_ranks", "my_cfg.ranks"}}},
      {"rules", Json::array({{{"require", "world.train_ranks % my_cfg.ranks == 0"},
                              {"key", "my_cfg.ranks"},
                              {"message", "{my_cfg.ranks} does not divide the {world.train_ranks} ranks"}}})}};
  config.merge_patch(more);
  return config;
}

// What is said of a run that chooses the backend `mine`, whose manifest is there without its library.
class Stranger {
 public:
  explicit Stranger(const Json& changes = {{"config", declaration()}}) {
    const fs::path library = folder_.path() / "libmine.so";
    std::ofstream(library) << "no code";
    Json all = {{"kind", "backend"}};
    all.merge_patch(changes);
    folder_.write_manifest(library, "mine", all);
    fs::remove(library);
  }

  std::string said(const std::vector<std::string>& overrides) const {
    const fs::path file = folder_.path() / "a.yaml";
    std::ofstream(file) << "policy: {model_name: m, backend: mine}\ndata: {train: {dataset_name: arithmetic}}\n"
                           "grpo: {num_prompts_per_step: 32}\ncluster: {gpus_per_node: 4}\nplugins:\n  paths: ["
                        << folder_.path().string() << "]\n";
    std::string text;
    try {
      for (const config::Problem& problem : config::check(config::load_with_defaults(file, overrides)))
        text += problem.text() + "\n";
    } catch (const Error& error) {
      text = error.what();
    }
    return text;
  }

  const PluginFolder& folder() const { return folder_; }

 private:
  PluginFolder folder_;
};

// The same with a check library of this source.
using Compile = std::function<fs::path(const PluginFolder&, const std::string& source)>;
std::string checked(const std::string& body, const std::vector<std::string>& overrides, const Compile& compile) {
  const PluginFolder folder;
  const fs::path check = compile(
      folder, "#include <hexad/check.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n" + body);
  const Stranger stranger(
      Json{{"config", declaration({{"rules", Json::array({{{"require", "check.parts < 3"},
                                                           {"key", "my_cfg.mode"},
                                                           {"message", "has {check.parts} parts"}}})}})},
           {"check", {{"library", "libmine_check.so"}, {"sha256", digest_of(check)}}}});
  fs::copy_file(check, stranger.folder().path() / "libmine_check.so");
  return stranger.said(overrides);
}

// Of this C source.
std::string checked(const std::string& body, const std::vector<std::string>& overrides = {}) {
  return checked(body, overrides, [](const PluginFolder& folder, const std::string& source) {
    return folder.compile("mine_check", "", source);
  });
}

const std::string kHead = "int32_t hexad_plugin_check_v1(const hexad_check_host* host, const char* input) ";

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a stranger's backend is checked by its manifest alone") {
  const Stranger stranger;
  CHECK(stranger.said({}) == "");
  CHECK(contains(stranger.said({"policy.my_cfg.mode=exakt"}),
                 "policy.my_cfg.mode: got 'exakt', wanted one of fast, exact; did you mean exact?"));
  CHECK(contains(stranger.said({"++policy.my_cfg.rank=2"}), "policy.my_cfg.rank: unknown key; did you mean"));
  CHECK(contains(stranger.said({"policy.my_cfg.ranks=3"}), "policy.my_cfg.ranks: 3 does not divide the 4 ranks"));
  CHECK(contains(stranger.said({"++policy.my_cfg.older=true"}), "policy.my_cfg.older: is now policy.my_cfg.old_name"));
  // The sizes of batches follow from its fact.
  CHECK(contains(stranger.said({"policy.my_cfg.ranks=1", "policy.train_global_batch_size=2"}),
                 "wanted a multiple of the 4 data-parallel ranks"));
  CHECK(!contains(stranger.said({"policy.my_cfg.ranks=2", "policy.train_global_batch_size=2"}), "wanted a multiple"));
}

TEST_CASE("a declaration that makes no sense is refused with file, key and rule") {
  const auto said = [](const Json& change) { return Stranger(Json{{"config", declaration(change)}}).said({}); };
  CHECK(contains(said({{"keys", {{"my_cfg.ranks", {{"type", "inte"}}}}}}),
                 "libmine.hexad.json: keys.my_cfg.ranks: type: got 'inte'"));
  CHECK(contains(said({{"keys", {{"my_cfg.ranks", {{"default", 0}}}}}}),
                 "keys.my_cfg.ranks: default: got int 0, wanted at least 1"));
  CHECK(contains(said({{"keys", {{"my_cfg.ranks", {{"minimum", 0}}}}}}),
                 "keys.my_cfg.ranks: minimum: no member of a key"));
  CHECK(contains(said({{"keys", {{"other.x", {{"type", "int"}}}}}}),
                 "keys.other.x: stands below other, which is declared nowhere"));
  CHECK(contains(said({{"facts", {{"copy_rank", "1"}}}}),
                 "facts.copy_rank: no fact that the engine asks for, did you mean 'copy_ranks'?"));
  CHECK(contains(said({{"facts", {{"copy_ranks", "1 +"}}}}), "facts.copy_ranks: '1 +': column 4"));
  CHECK(contains(said({{"rules", Json::array({{{"require", "true"}}})}}), "rules[0]: 'key' is missing"));
  CHECK(contains(said({{"rulez", Json::array()}}), "rulez: no part of a configuration, did you mean 'rules'?"));
  CHECK(contains(said({{"facts", {{"copy_ranks", "'two'"}}}}), "facts.copy_ranks comes to two, wanted an integer"));
}

TEST_CASE("a plugin that declares no keys is told of where its plugin_config is written") {
  const Stranger silent(Json::object());
  CHECK_FALSE(contains(silent.said({}), "plugin_config"));
  CHECK(contains(silent.said({"++policy.plugin_config.x=1"}),
                 "policy.plugin_config: is not checked: the manifest of 'mine' declares no keys"));
}

TEST_CASE("a check library says what expressions cannot, and gives values to the rules") {
  CHECK(checked(kHead + "{ host->name(host->ctx, \"parts\", \"2\"); return 0; }") == "");
  CHECK(
      contains(checked(kHead + "{ host->name(host->ctx, \"parts\", \"7\"); return 0; }"), "my_cfg.mode: has 7 parts"));
  CHECK(contains(checked(kHead + "{ host->finding(host->ctx, 0, \"my_cfg.mode\", \"is odd\"); return 0; }"),
                 "error: policy.my_cfg.mode: is odd"));
  CHECK(contains(checked(kHead + "{ host->finding(host->ctx, 1, \"my_cfg.mode\", \"is odd\"); return 0; }"),
                 "notice: policy.my_cfg.mode: is odd"));
}

TEST_CASE("a check library reads a section that is larger than what a socket takes at once") {
  const std::string body =
      kHead + "{ host->name(host->ctx, \"parts\", strlen(input) > 3000000 ? \"2\" : \"7\"); return 0; }";
  const std::string long_name = "policy.model_name=" + std::string(3'000'000, 'm');
  CHECK_FALSE(contains(checked(body, {long_name}), "my_cfg.mode"));
  CHECK(contains(checked(body), "my_cfg.mode: has 7 parts"));
}

TEST_CASE("a check library that crashes, hangs or answers nonsense is one line that names the plugin") {
  const auto faulty = [](const std::string& body, const std::string& words) {
    const std::string said = checked(body);
    CHECK_MESSAGE(contains(said, "the check library of 'mine'"), said);
    CHECK_MESSAGE(contains(said, words), said);
  };
  faulty(kHead + "{ *(volatile int*)0 = 1; return 0; }", "was killed by signal 11");
  faulty(kHead + "{ for (;;) {} }", "did not end within 500 ms");
  faulty(kHead + "{ exit(3); }", "ended with exit status 3");
  faulty(kHead + "{ return 4; }", "hexad_plugin_check_v1 returned 4");
  faulty(kHead + "{ host->finding(host->ctx, 0, \"\\x1b[31m\", \"x\"); return 0; }", "has a finding about no key");
  faulty(kHead + "{ host->name(host->ctx, \"parts\", \"[1]\"); return 0; }", "gives the name parts the value [1]");
  faulty(kHead + "{ for (;;) if (!malloc(1 << 20)) abort(); }", "was killed by signal 6");
  faulty(kHead + "{ for (int fd = 3; fd < 1024; ++fd) close(fd); for (;;) sleep(1); }", "was killed by signal 9");
  faulty("__attribute__((constructor)) static void wait(void) { for (;;) sleep(1); }\n" + kHead + "{ return 0; }",
         "did not end within 500 ms");
  faulty("int nothing;", "undefined symbol: hexad_plugin_check_v1");
}

TEST_CASE("what a check library throws is told, also where it has a runtime of its own") {
  const std::string body = "#include <stdexcept>\n" + kHead + "{ throw std::runtime_error(\"no such table\"); }";
  for (const char* flags : {"", "-static-libstdc++", "-static-libstdc++ -static-libgcc"}) {
    const std::string said = checked(body, {}, [&](const PluginFolder& folder, const std::string& source) {
      return folder.compile_cpp("mine_check", flags, source);
    });
    CHECK_MESSAGE(contains(said, "threw a C++ exception across the ABI: no such table: the plugin is faulty"), said);
  }
}

TEST_CASE("a check library that is not the manifest's is not opened") {
  const Stranger stranger(
      Json{{"config", declaration()}, {"check", {{"library", "libmine_check.so"}, {"sha256", std::string(64, '0')}}}});
  CHECK(contains(stranger.said({}), "is refused"));
  std::ofstream(stranger.folder().path() / "libmine_check.so") << "not it";
  CHECK(contains(stranger.said({}), "its digest is not the manifest's"));
  fs::resize_file(stranger.folder().path() / "libmine_check.so", 65 << 20);
  CHECK(contains(stranger.said({}), "it has 68157440 bytes, a check library has at most 67108864"));
}

TEST_CASE("a check library is opened only where nobody else could have changed it, its links and what it needs") {
  const PluginFolder real;
  const fs::path libs = real.path() / "libs", dep = real.compile("dep", "", "int nothing;");
  fs::create_directory(libs);
  fs::rename(dep, libs / dep.filename());
  const fs::path check = real.compile(
      "mine_check", fmt::format("-Wl,--no-as-needed -L{} -ldep '-Wl,-rpath,$ORIGIN/libs'", libs.string()),
      "#include <hexad/check.h>\n" + kHead + "{ host->finding(host->ctx, 0, \"my_cfg.mode\", \"is odd\"); return 0; }");
  const Stranger stranger(
      Json{{"config", declaration()}, {"check", {{"library", "libmine_check.so"}, {"sha256", digest_of(check)}}}});
  const fs::path folder = stranger.folder().path();
  fs::create_symlink(check, folder / "libmine_check.so");
  const std::string open = " is writable by everyone (mode 0777)", allow = "++plugins.allow_insecure_dirs=true";
  CHECK(contains(stranger.said({}), "policy.my_cfg.mode: is odd"));
  chmod(folder.c_str(), 0777);
  CHECK(contains(stranger.said({}), "is refused: " + folder.string() + open));
  CHECK(contains(stranger.said({allow}), "policy.my_cfg.mode: is odd"));
  chmod(folder.c_str(), 0755);
  chmod(libs.c_str(), 0777);
  CHECK(contains(stranger.said({}), "is refused: libmine_check.so needs libdep.so: it is looked for in"));
  chmod(libs.c_str(), 0755);
  chmod((folder / "libmine.hexad.json").c_str(), 0666);
  CHECK(contains(stranger.said({}), "libmine.hexad.json is writable by everyone (mode 0666)"));
}

TEST_SUITE_END();
