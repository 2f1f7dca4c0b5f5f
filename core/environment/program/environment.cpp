#include "core/environment/program/environment.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/environment/arguments.hpp"
#include "core/environment/program/scoring.hpp"
#include "lib/base/error.hpp"
#include "lib/base/said/once.hpp"
#include "lib/base/text.hpp"
#include "lib/process/program_folders.hpp"
#include "lib/process/secret.hpp"

namespace hexad::environment {
namespace {

bool executable(const std::filesystem::path& file) {
  std::error_code none;
  return std::filesystem::is_regular_file(file, none) && ::access(file.c_str(), X_OK) == 0;
}

bool found(const std::string& program) {
  if (program.find('/') != program.npos) return executable(program);
  const char* variable = std::getenv("PATH");
  std::string rest = variable ? variable : "";
  for (;;) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string folder = rest.substr(0, end);
    if (executable(std::filesystem::path(folder.empty() ? "." : folder) / program)) return true;
    if (end == rest.size()) return false;
    rest.erase(0, end + 1);
  }
}

// What the kernel lacks, once in this process; and which variables the program does not see.
void say_of(const process::Sandbox& sandbox, const std::string& path) {
  const std::string lacks = process::lacking(sandbox.strict, process::this_kernel());
  if (!lacks.empty() && first_time("sandbox: " + lacks))
    spdlog::warn("{}: the kernel cannot do all of its sandbox: {} (docs/rewards.md)", path, lacks);
  const std::string kept = joined(process::secrets_of_ours(sandbox.pass_env));
  if (!kept.empty())
    spdlog::info("{}: the program is not given {}; {}.pass_env names what it needs of these", path, kept, path);
}

class ProgramEnvironment : public Environment {
 public:
  ProgramEnvironment(ProgramSettings settings, const std::atomic<int>* interrupted)
      : settings_(std::move(settings)),
        interrupted_(interrupted),
        pool_(settings_.command, settings_.sandbox, settings_.path, static_cast<size_t>(settings_.num_workers)) {
    if (settings_.sandbox) say_of(*settings_.sandbox, settings_.path);
  }

  Scores score(std::span<const Sample> samples, int64_t step) const override {
    ProgramScoring scoring(settings_, pool_, samples, step);
    Scores scores = scoring.run(interrupted_);
    if (scoring.answered() > 0) ever_answered_ = true;
    if (!samples.empty() && scoring.failed() == samples.size() && !ever_answered_)
      fail(
          ErrorKind::config,
          "{}: the program `{}` has never answered: {}. Try it by hand: it reads a request a line and writes an answer "
          "a line (docs/rewards.md)",
          settings_.path, settings_.shown, scores.why_invalid);
    return scores;
  }
  bool compares_answer() const override { return false; }  // it knows what it needs

 private:
  const ProgramSettings settings_;
  const std::atomic<int>* interrupted_;
  mutable std::atomic<bool> ever_answered_ = false;
  mutable ProgramPool pool_;
};

}  // namespace

std::unique_ptr<Environment> make_program_environment(const std::string& name, const nlohmann::ordered_json& section,
                                                      const std::atomic<int>* interrupted) {
  try {
    return std::make_unique<ProgramEnvironment>(program_settings(name, section), interrupted);
  } catch (const ProgramFailed& error) {
    fail(ErrorKind::config, "env.{}.command: the program {}", name, error.what());
  }
}

ProgramSettings program_settings(const std::string& name, const nlohmann::ordered_json& section) {
  const Arguments arguments(
      name, section,
      {"command", "timeout_s", "startup_timeout_s", "retries", "batch_size", "components", "sandbox", "pass_env"});
  ProgramSettings settings;
  settings.path = "env." + name;
  if (section.at("command").is_string()) {
    settings.shown = arguments.text("command", "");
    settings.command = {"/bin/sh", "-c", settings.shown};
  } else {
    settings.command = arguments.texts("command");
    settings.shown = joined(settings.command, " ");
  }
  if (settings.shown.empty())
    fail(ErrorKind::config, "{}: want a program, as [python3, reward.py] or one text, got nothing",
         arguments.path("command"));
  settings.num_workers = arguments.integer("num_workers", 4, 1);
  settings.timeout_s = arguments.seconds("timeout_s", 60);
  settings.startup_timeout_s = arguments.seconds("startup_timeout_s", 60);
  settings.retries = arguments.integer("retries", 1, 0);
  settings.batch_size = arguments.integer("batch_size", 1, 1);
  settings.components = arguments.texts("components");
  if (std::set<std::string>(settings.components.begin(), settings.components.end()).size() !=
      settings.components.size())
    fail(ErrorKind::config, "{}: a name stands there twice", arguments.path("components"));
  const std::string sandbox = arguments.choice("sandbox", "default", {"default", "strict", "none"});
  if (sandbox != "none") {
    settings.sandbox = process::sandbox_of(settings.command, sandbox == "strict");
    settings.sandbox->pass_env = arguments.texts("pass_env");
  } else if (arguments.has("pass_env")) {
    fail(ErrorKind::config, "{}: a program without a sandbox is given every variable; remove the key, or sandbox: none",
         arguments.path("pass_env"));
  }
  if (!found(settings.command[0]))
    fail(ErrorKind::config,
         "{}: no program '{}' {}. Give its path (from the folder that hexad is started in), and make the file "
         "executable or name its interpreter first, as [python3, reward.py]",
         arguments.path("command"), settings.command[0],
         settings.command[0].find('/') == std::string::npos ? "on PATH" : "that can be run");
  return settings;
}

}  // namespace hexad::environment
