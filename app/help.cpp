// hexad help [TOPIC], hexad completion SHELL; what shells ask, and a hidden command that writes the manual pages.
#include <filesystem>
#include <iostream>

#include "app/commands.hpp"
#include "app/help/complete.hpp"
#include "app/help/exit_codes.hpp"
#include "app/help/man.hpp"
#include "app/help/topics.hpp"
#include "app/help/tree.hpp"
#include "app/program.hpp"
#include "compat/compat.hpp"
#include "core/config/check.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace hexad::help {
extern const char* const kBashCompletion;
extern const char* const kZshCompletion;
extern const char* const kFishCompletion;
}  // namespace hexad::help

namespace hexad::cli {
namespace {

std::string list_of_topics() {
  std::string text = "`hexad help TOPIC` prints one of these, `hexad help COMMAND` what a command takes:\n\n";
  for (const help::Topic& topic : help::topics()) text += fmt::format("  {:12} {}\n", topic.name, topic.title);
  return text + "\n`hexad --help` lists the commands.\n";
}

int print_help(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) {
    std::cout << list_of_topics();
    return 0;
  }
  if (const help::Topic* topic = words.size() == 1 ? help::find_topic(words[0]) : nullptr) {
    std::cout << topic->text;
    return 0;
  }
  const CLI::App* command = &app;
  std::string before;  // the words in front of it, as the usage has them
  for (const std::string& word : words) {
    const CLI::App* next = help::command_named(*command, word);
    if (!next) {
      std::vector<std::string> known;
      for (const CLI::App* each : help::commands_of(*command)) known.push_back(each->get_name());
      if (command == &app)
        for (const help::Topic& topic : help::topics()) known.push_back(topic.name);
      const std::optional<std::string> near = nearest(word, known);
      fail(ErrorKind::config, "no help about '{}'; {}", joined(words, " "),
           near ? fmt::format("did you mean '{}'?", *near) : "`hexad help` lists the topics");
    }
    before += (before.empty() ? "" : " ") + command->get_name();
    command = next;
  }
  std::cout << command->help(before);
  return 0;
}

int print_completion(const std::string& shell) {
  const std::pair<const char*, const char*> known[] = {
      {"bash", help::kBashCompletion}, {"zsh", help::kZshCompletion}, {"fish", help::kFishCompletion}};
  for (const auto& [name, script] : known) {
    if (shell != name) continue;
    print_raw();
    std::cout << script;
    return 0;
  }
  fail(ErrorKind::config, "completion: got '{}', wanted bash, zsh or fish", shell);
}

// A shell waits for the answer, and shows no error: a configuration that cannot be read has the engine's keys.
std::vector<std::string> keys_for(const std::string& file) {
  std::vector<std::string> keys;
  const auto take = [&](const config::Schema& schema) {
    for (const config::Key& key : schema.keys())
      if (key.path.find('*') == key.path.npos && (key.kinds & ~unsigned{config::kMap | config::kNull}) != 0)
        keys.push_back(key.path);
  };
  try {
    if (!file.empty()) take(config::load_with_defaults(file, {}, compat::all()).schema);
  } catch (const std::exception&) {
    keys.clear();
  }
  if (keys.empty()) take(config::core_schema());
  return keys;
}

void write_man_pages(const CLI::App& app, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (const help::ManPage& page : help::man_pages(app, HEXAD_VERSION))
    write_file(std::filesystem::path(folder) / page.name, page.text);
}

}  // namespace

std::string completions(const CLI::App& app, const std::vector<std::string>& words) {
  return help::lines_of(help::complete(app, words, keys_for));
}

void add_help(CLI::App& app, int& exit_code) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app.add_subcommand("help", "Short texts about configs, data, rewards ..., and about commands");
  help->add_option("TOPIC", *words, "A topic or a command; without one they are listed");
  help->callback([words, &app, &exit_code] { exit_code = print_help(app, *words); });

  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "A script that lets a shell complete commands and keys");
  completion->add_option("SHELL", *shell, "bash, zsh or fish: source <(hexad completion bash)")->required();
  completion->callback([shell, &exit_code] { exit_code = print_completion(*shell); });

  auto folder = std::make_shared<std::string>();
  CLI::App* man = app.add_subcommand("__man", "Writes the manual pages into a folder (asked by the build)");
  man->group("");
  man->add_option("FOLDER", *folder, "")->required();
  man->callback([folder, &app] { write_man_pages(app, *folder); });
}

}  // namespace hexad::cli
