// hexad setup [--from DIR] [--into DIR | --download DIR]
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/commands.hpp"
#include "lib/base/error.hpp"
#include "lib/installation/home.hpp"

namespace hexad::cli {
namespace {

struct SetupArguments {
  std::string from;
  std::string into;
  std::string download;
};

// The script that fetches is the one that install.sh of the tarball runs, and becomes this process.
[[noreturn]] void fetch(const SetupArguments& arguments) {
  const std::string script = (installation::home() / "share/hexad/runtime/setup.sh").string();
  std::vector<const char*> words = {"bash", script.c_str()};
  for (const auto& [option, value] :
       {std::pair{"--from", &arguments.from}, {"--into", &arguments.into}, {"--download", &arguments.download}})
    if (!value->empty()) words.insert(words.end(), {option, value->c_str()});
  words.push_back(nullptr);
  ::execvp(words[0], const_cast<char* const*>(words.data()));
  fail(ErrorKind::config, "hexad setup is a script for bash, which cannot be started: {}", std::strerror(errno));
}

}  // namespace

void add_setup(CLI::App& app) {
  auto arguments = std::make_shared<SetupArguments>();
  CLI::App* command = app.add_subcommand("setup", "Fetch LibTorch and Apache Arrow for this user");
  command->add_option("--from", arguments->from, "Folder that has the wheels: without the network");
  command->add_option("--into", arguments->into, "Folder that gets them (default: of the cache)");
  command->add_option("--download", arguments->download, "Folder that gets the wheels alone, for --from elsewhere");
  command->callback([arguments] { fetch(*arguments); });
}

}  // namespace hexad::cli
