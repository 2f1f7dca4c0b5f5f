// Reward programs that try what their sandbox keeps from them.
#include <cstdlib>

#include "lib/process/sandbox.hpp"
#include "tests/environment/scripted_program.hpp"
#include "tests/support/report.hpp"

using namespace scripted;
using plugin_test::contains;
using plugin_test::error_of;
using Floats = std::vector<float>;

namespace {

// Rewards 1 for what it was let do.
constexpr const char* kCurious = R"PY(
import json, os, socket, sys
def done(text):
    what, _, rest = text.partition(":")
    if what == "crash": open(rest, "w")
    try:
        if what == "write": open(rest, "w").close()
        if what == "read": open(rest).read()
        if what == "see": return rest in os.environ
        if what == "temporary": open(os.path.join(os.environ["TMPDIR"], "x"), "w").close()
        if what == "network": socket.socket(socket.AF_INET).close()
        if what == "descriptors": return sorted(os.listdir("/proc/self/fd")) == ["0", "1", "2", "3"]
    except OSError as error:
        sys.stderr.write("%s\n" % error)
        return False
    return True
for line in sys.stdin:
    r = json.loads(line)
    print(json.dumps({"id": r["id"], "reward": done(r["response"])}), flush=True)
)PY";

// A program in the folder `program`, with the folder `tmp` for temporary files; `other` is neither. On a disk: shared
// memory, where folders of tests are else, may be written in the ordinary sandbox.
struct Curious {
  Curious() {
    REQUIRE(::mkdtemp(dir.data()) != nullptr);
    for (const char* folder : {"program", "tmp", "other"}) toy::fs::create_directory(path(folder));
    script.file = path("program/curious.py");
    std::ofstream(script.file) << kCurious;
    std::ofstream(path("other/file")) << "secret";
    if (const char* before = std::getenv("TMPDIR")) temporary = before;
    ::setenv("TMPDIR", path("tmp").c_str(), 1);
    ::setenv("HEXAD_TEST_TOKEN", "t", 1);
    ::setenv("HEXAD_TEST_KEY", "k", 1);
    ::setenv("HEXAD_TEST_WORD", "w", 1);
  }
  ~Curious() {
    temporary.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", temporary.c_str(), 1);
    for (const char* name : {"HEXAD_TEST_TOKEN", "HEXAD_TEST_KEY", "HEXAD_TEST_WORD"}) ::unsetenv(name);
    std::error_code none;
    toy::fs::remove_all(dir, none);
  }
  std::string path(const char* name) const { return dir + "/" + name; }
  // Whether each is done.
  Floats tries(Json section, const std::vector<std::string>& attempts) {
    section["num_workers"] = 1;
    return score(*script.make(section), attempts).rewards;
  }

  std::string dir = (toy::fs::temp_directory_path() / "hexad-sandbox-XXXXXX").string();
  Script script;
  std::string temporary;
};

bool has_landlock() {
  if (process::this_kernel().landlock > 0) return true;
  test_report::skipped("this kernel has no Landlock");
  return false;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a reward program is given no secrets but those of pass_env, and a line says which, and no descriptors") {
  Curious curious;
  const std::vector<std::string> sees = {"see:HEXAD_TEST_TOKEN", "see:HEXAD_TEST_KEY", "see:HEXAD_TEST_WORD",
                                         "descriptors"};
  const Log log;
  CHECK(curious.tries({}, sees) == Floats{0, 0, 1, 1});
  SAYS(log.text(), "env.mine: the program is not given ");
  SAYS(log.text(), "HEXAD_TEST_KEY, HEXAD_TEST_TOKEN");
  SAYS(log.text(), "; env.mine.pass_env names what it needs of these");
  CHECK(curious.tries({{"pass_env", {"HEXAD_TEST_KEY"}}}, sees) == Floats{0, 1, 1, 1});
  CHECK(curious.tries({{"sandbox", "strict"}, {"pass_env", {"HEXAD_TEST_TOKEN"}}}, sees) == Floats{1, 0, 1, 1});
  CHECK(curious.tries({{"sandbox", "none"}}, sees) == Floats{1, 1, 1, 1});
}

TEST_CASE("a reward program writes its working folder and TMPDIR, reads everything, and has the network") {
  if (!has_landlock()) return;
  Curious curious;
  const std::string here = (toy::fs::current_path() / "hexad-sandbox-test").string();
  const std::vector<std::string> attempts = {"write:" + here,
                                             "temporary:",
                                             "write:" + curious.path("tmp/a"),
                                             "write:" + curious.path("other/a"),
                                             "write:" + curious.path("program/a"),
                                             "read:" + curious.path("other/file"),
                                             "network:"};
  const bool may_write_here = ::access(".", W_OK) == 0;
  const auto expected = [&](Floats rewards) { return rewards[0] = may_write_here, rewards; };
  CHECK(curious.tries({}, attempts) == expected({1, 1, 1, 0, 0, 1, 1}));
  CHECK(curious.tries({{"sandbox", "default"}}, attempts) == expected({1, 1, 1, 0, 0, 1, 1}));
  CHECK_FALSE(toy::fs::exists(curious.path("other/a")));
  CHECK(curious.tries({{"sandbox", "none"}}, attempts) == expected({1, 1, 1, 1, 1, 1, 1}));
  toy::fs::remove(here);
}

TEST_CASE("a strict reward program reads its own folder, writes a TMPDIR of its own, and has no network") {
  if (!has_landlock()) return;
  Curious curious;
  const std::vector<std::string> attempts = {"temporary:",
                                             "write:" + curious.path("tmp/a"),
                                             "write:" + curious.path("other/a"),
                                             "write:" + curious.path("program/a"),
                                             "read:" + curious.path("other/file"),
                                             "read:" + curious.script.file.string(),
                                             "network:"};
  const float network = process::this_kernel().seccomp ? 0 : 1;
  CHECK(curious.tries({{"sandbox", "strict"}}, attempts) == Floats{1, 0, 0, 0, 0, 1, network});
  CHECK(toy::fs::is_empty(curious.path("tmp")));
}

TEST_CASE("a program that fails by what its sandbox keeps from it is said to have one") {
  if (!has_landlock()) return;
  Curious curious;
  const std::string attempt = "crash:" + curious.path("other/a"), hint = "what its sandbox keeps from a program";
  SAYS(error_of([&] {
         curious.tries({{"retries", 0}}, {attempt});
       }),
       "Permission denied: '" + curious.path("other/a") + "' (" + hint + ": docs/rewards.md)");
  const std::string folder = "crash:" + curious.path("other");  // no other error
  CHECK_FALSE(contains(error_of([&] { curious.tries({{"retries", 0}}, {folder}); }), hint));
}

TEST_CASE("parts of a sum have sandboxes of their own") {
  if (!has_landlock()) return;
  Curious curious;
  const Json command = {"python3", curious.script.file.string()};
  Json parts = Json::array();
  for (const char* kind : {"default", "none"})
    parts.push_back({{"name", kind}, {"weight", 1}, {"command", command}, {"num_workers", 1}, {"sandbox", kind}});
  plugin::Registry none({}, nullptr);
  const auto sum = environment::make("sum", {{"rewards", parts}}, {none, {}, nullptr});
  CHECK(score(*sum, {"write:" + curious.path("other/a"), "see:HEXAD_TEST_WORD"}).rewards == Floats{1, 2});
}

TEST_CASE("wrong keys of a sandbox are refused") {
  Script script;
  const auto refuses = [&](const Json& section) { return error_of([&] { script.make(section); }); };
  SAYS(refuses({{"sandbox", "full"}}), "env.mine.sandbox: want one of default, strict, none, got \"full\"");
  SAYS(refuses({{"sandbox", true}}), "env.mine.sandbox: want one of default, strict, none, got true");
  SAYS(refuses({{"pass_env", "HF_TOKEN"}}), "env.mine.pass_env: want a list of texts, got \"HF_TOKEN\"");
  SAYS(refuses({{"sandbox", "none"}, {"pass_env", {"HF_TOKEN"}}}),
       "env.mine.pass_env: a program without a sandbox is given every variable; remove the key, or sandbox: none");
}

TEST_SUITE_END();
