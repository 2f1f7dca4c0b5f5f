// What strangers wrote reaches the terminal by number: reasons, names of files, manifests, keys.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <iostream>

#include "app/program.hpp"
#include "lib/base/error.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;

namespace {

// Nothing in it that a terminal obeys, and no line that only a stranger wrote.
bool is_safe(const std::string& text) {
  return text.find_first_of("\x1b\r\x07\x7f") == text.npos && !contains(text, "\u009b") && !contains(text, "\u202e") &&
         !contains(text, "\nstep 9/9") && !text.starts_with("step 9/9");
}

void check_safe(const Ended& ended) {
  const std::string said = ended.out + ended.err;
  CHECK_MESSAGE(is_safe(said), said);
}

// What `body` has written to std::cout.
template <typename Body>
std::string printed(const TempDir& dir, const Body& body) {
  const toy::fs::path file = dir / "printed";
  const int before = ::dup(STDOUT_FILENO), to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(to, STDOUT_FILENO);
  hexad::cli::run_program("test", [&] { return body(), 0; });
  ::dup2(before, STDOUT_FILENO);
  ::close(before), ::close(to);
  return toy::read_text(file);
}

const std::string kHostile = "\x1b]0;x\x07\x1b[31m\u009b2J\u202e\r\nstep 9/9  reward 1.000";

}  // namespace

TEST_CASE("standard output shows what a terminal obeys, until a text is asked for as it is") {
  const TempDir dir;
  CHECK(printed(dir, [] {
          std::cout << "a\x1b[1m\u009b" << '\n' << std::string("\xc3") << "\xa9\n";
        }) == "a\\x1b[1m\\u009b\n\u00e9\n");
  const std::string large = std::string(70'000, 'x') + "\u00e9";
  CHECK(printed(dir, [&] { std::cout << large.substr(0, large.size() - 1) << large.back() << std::flush; }) == large);
  CHECK(printed(dir, [] {
          hexad::cli::print_raw();
          std::cout << "a\x1b[1m\xff\n";
        }) == "a\x1b[1m\xff\n");
}

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a reward's reason is no line of the console") {
  const TempDir dir;
  dir.write("reward.py", R"PY(
import json, sys
for line in sys.stdin:
    sys.stderr.write("\x1b[31mnote\u009b\n")
    reason = "\x1b]0;x\x07\x1b[31m\u009b2J\u202e\r\nstep 9/9  reward 1.000"
    print(json.dumps({"id": json.loads(line)["id"], "invalid": True, "reason": reason}), flush=True)
)PY");
  const Ended ended =
      toy::run(toy::train(dir, {"data.train.env_name=r", fmt::format("+env.r={{command: [python3, {}], retries: 0}}",
                                                                     (dir / "reward.py").string())}));
  CHECK(ended.code != 0);
  check_safe(ended);
  CHECK_MESSAGE(contains(ended.err, "\\x1b]0;x\\x07\\x1b[31m\\u009b2J"), ended.err);
}

TEST_CASE("names and versions of plugins are no lines of the list") {
  const TempDir dir;
  const std::string folder = "plugins\x1b[31m\u009b\nstep 9/9";
  for (const auto& entry : toy::fs::directory_iterator(toy::plugins())) {
    if (!entry.path().filename().string().starts_with("libppo_clip_c.") || entry.path().extension() != ".json")
      continue;
    plugin_test::Json manifest = plugin_test::Json::parse(toy::read_text(entry.path()));
    manifest["version"] = kHostile;
    dir.write(toy::fs::path(folder) / entry.path().filename(), manifest.dump());
  }
  dir.write(toy::fs::path(folder) / "broken\x1b[1m.hexad.json", "{\"name\": \"\x1b");
  ::setenv("HEXAD_PLUGIN_PATH", (dir / folder).c_str(), 1);
  for (const Arguments& command : {Arguments{"plugin", "list"}, Arguments{"plugin", "list", "--json"},
                                   Arguments{"plugin", "info", "ppo_clip_c"}, Arguments{"plugin", "info", "absent"}}) {
    const Ended ended = toy::run(command);
    CAPTURE(command.back());
    check_safe(ended);
    CHECK_FALSE((ended.out + ended.err).empty());
  }
  ::unsetenv("HEXAD_PLUGIN_PATH");
}

TEST_CASE("keys, values and names of files are shown") {
  const TempDir dir;
  const std::string keys =
                        dir.write("keys.yaml", "grpo: {\"\\e[31mx\\N\\nstep 9/9\": 1, seed: \"\\x9b\\nstep 9/9\"}\n"),
                    model = (toy::source_dir() / "configs/quickstart_model").string(),
                    lines = dir.write("in\x1b[31m\nstep 9/9.jsonl", "{\"text\": 1}\n").string(),
                    folder = dir / "run\x1b[1m\nstep 9/9";
  dir.write(toy::fs::path(folder) / "metrics.jsonl", "{\"step\": 1, \"train/loss\": 1.0}\n");
  dir.write(toy::fs::path(folder) / "config.yaml", "a: {\"\\e[1m\\nstep 9/9\": \"\\x9b\"}\n");
  dir.write(toy::fs::path(folder) / "step_3/training_info.json", "{");
  const Arguments commands[] = {{"config", "check", keys},
                                {"config", "show", keys},
                                {"tokenize", model, "--input", lines},
                                {"report", folder, folder, "--compare", "--out", folder + "/c.html"},
                                {"report", folder},
                                {"checkpoint", "list", folder},
                                {"checkpoint", "verify", folder},
                                {"config", "check", folder},
                                {"un\x1b[1mknown\nstep 9/9"}};
  for (const Arguments& command : commands) {
    const Ended ended = toy::run(command);
    CAPTURE(command.front());
    check_safe(ended);
    CHECK_FALSE((ended.out + ended.err).empty());
  }
}

TEST_SUITE_END();
