// What shells are told that may come next, and what they do with it.
#include <sstream>

#include "tests/support/report.hpp"
#include "tests/support/terminal.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;

namespace {

// What the program offers for a line, without the explanations.
Arguments offered(Arguments words) {
  words.insert(words.begin(), "__complete");
  const Ended asked = toy::run(words);
  CHECK(asked.code == 0);
  CHECK(asked.err == "");
  Arguments found;
  std::istringstream lines(asked.out);
  for (std::string line; std::getline(lines, line);) found.push_back(line.substr(0, line.find('\t')));
  return found;
}

bool has(const Arguments& words, const std::string& word) { return std::ranges::find(words, word) != words.end(); }

// What `shell` prints that has the program's folder in its PATH, in a folder with a file run.yaml.
std::string printed_by(const std::string& shell, const std::string& script) {
  const TempDir dir;
  dir.write("run.yaml", "");
  const Ended ended =
      Program({"env", "-C", dir.path().string(),
               fmt::format("PATH={}:{}", toy::hexad().parent_path().string(), std::getenv("PATH")), shell},
              {"-c", script}, "")
          .wait();
  INFO(ended.err);
  CHECK(ended.code == 0);
  return ended.out;
}

bool is_installed(const std::string& program) {
  return Program({"sh"}, {"-c", "command -v " + program + " > /dev/null"}, "").wait().code == 0;
}

}  // namespace

TEST_CASE("commands, their subcommands and options are offered, and hidden ones are not") {
  const Arguments commands = offered({""});
  for (const char* name : {"train", "config", "help", "completion", "doctor"}) CHECK_MESSAGE(has(commands, name), name);
  for (const char* name : {"worker", "__man", "__complete"}) CHECK_FALSE(has(commands, name));
  CHECK(offered({"tra"}) == Arguments{"train"});
  CHECK(offered({"config", "s"}) == Arguments{"show"});
  CHECK(offered({"train", "--fr"}) == Arguments{"--fresh"});
  CHECK(offered({"--ver"}) == Arguments{"--version"});
  CHECK(offered({"config", "show", "a.yaml", "--"}) == Arguments{"--help", "--json", "--origin"});
  CHECK(offered({"nonsense", ""}) == Arguments{});
}

TEST_CASE("files are offered where a file is wanted, topics and shells where these are") {
  CHECK(offered({"train", ""}) == Arguments{":files"});
  CHECK(offered({"score", "model", "--input", ""}) == Arguments{":files"});  // an option's value
  CHECK(offered({"convert", "--dtype", "float32", "a", ""}) == Arguments{":files"});
  CHECK(offered({"convert", "a", "b", ""}) == Arguments{});
  CHECK(has(offered({"help", ""}), "rewards"));
  CHECK(offered({"completion", "z"}) == Arguments{"zsh"});
}

TEST_CASE("keys are offered a section at a time, those of the config's plugins too") {
  CHECK(offered({"train", "none.yaml", "grp"}) == Arguments{"grpo."});
  CHECK(offered({"train", "none.yaml", "grpo.max_num_s"}) == Arguments{"grpo.max_num_steps="});
  CHECK(offered({"config", "check", "none.yaml", "++policy.optimizer.kwargs.l"}) ==
        Arguments{"++policy.optimizer.kwargs.lr="});
  CHECK(offered({"train", "none.yaml", "grpo.seed=1", "~grpo.see"}) == Arguments{"~grpo.seed"});
  CHECK(offered({"train", "none.yaml", "data.train.data_path=/dev/nul"}) == Arguments{":files"});
  const TempDir dir;
  const std::string config = dir.write("run.yaml", toy::config_text(dir.path())).string();
  CHECK(offered({"train", config, "policy.generation.max_new"}) == Arguments{"policy.generation.max_new_tokens="});
}

TEST_CASE("bash completes with it") {
  const std::string ask =
      "source <(hexad completion bash); COMP_LINE=\"$1\"; COMP_POINT=${#1}; _hexad; printf '%s|' \"${COMPREPLY[@]}\"";
  const auto bash = [&](const std::string& line) { return printed_by("bash", "set -- '" + line + "'; " + ask); };
  CHECK(bash("hexad con") == "config|convert|");
  CHECK(bash("hexad train ru") == "run.yaml|");
  CHECK(bash("hexad train run.yaml grpo.max_num_s") == "grpo.max_num_steps=|");
  CHECK(bash("hexad train run.yaml data.train.data_path=ru") == "run.yaml|");
}

TEST_CASE("fish completes with it") {
  if (!is_installed("fish")) return test_report::skipped("fish is not installed (tools/setup.sh --tests)");
  const auto fish = [](const std::string& line) {
    return printed_by("fish",
                      "hexad completion fish | source; complete -C '" + line + "' | string split -f 1 \\t; true");
  };
  CHECK(fish("hexad con") == "config\nconvert\n");
  CHECK(fish("hexad train ru") == "run.yaml\n");
  CHECK(fish("hexad train run.yaml grpo.max_num_s") == "grpo.max_num_steps=\n");
  CHECK(fish("hexad train run.yaml data.train.data_path=ru") == "data.train.data_path=run.yaml\n");
}

TEST_CASE("zsh completes with it") {
  if (!is_installed("zsh")) return test_report::skipped("zsh is not installed (tools/setup.sh --tests)");
  const TempDir dir;
  dir.write("run.yaml", "");
  dir.write(".zshrc", fmt::format("path=({} $path); PS1='> '; autoload -Uz compinit; compinit -u -D\n"
                                  "source <(hexad completion zsh); cd {}; print ready\n",
                                  toy::hexad().parent_path().string(), dir.path().string()));
  toy::Terminal terminal(120, "zsh -i", fmt::format("ZDOTDIR={}", dir.path().string()));
  const auto shows = [&](const std::string& text) {
    return toy::eventually([&] { return contains(terminal.text(), text); }, 30);
  };
  REQUIRE_MESSAGE(shows("ready"), terminal.text());
  terminal.type("'hexad trai' Tab 'ru' Tab 'grpo.max_num_s' Tab '7'");
  CHECK_MESSAGE(shows("> hexad train run.yaml grpo.max_num_steps=7"), terminal.text());
  terminal.type("C-u 'hexad conf' Tab 'sh' Tab '--ori' Tab");
  CHECK_MESSAGE(shows("> hexad config show --origin"), terminal.text());
}

TEST_CASE("an unknown shell is refused") {
  const Ended asked = toy::run({"completion", "tcsh"});
  CHECK(asked.code == 2);
  CHECK(asked.err == "hexad: completion: got 'tcsh', wanted bash, zsh or fish\n");
}
