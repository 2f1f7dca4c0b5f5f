#include "core/environment/program/environment.hpp"

#include <spdlog/spdlog.h>

#include <set>

#include "core/environment/arguments.hpp"
#include "core/environment/program/scoring.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/once.hpp"
#include "lib/base/text.hpp"
#include "lib/process/program_folders.hpp"
#include "lib/process/secret.hpp"
#include "lib/program/python_file.hpp"

namespace hexad::environment {

extern const char* const kRewardFile;  // sdk/python/reward_file.py

namespace {

constexpr const char* kRefused = " (what its sandbox keeps from a program: docs/rewards.md)";

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
        pool_({"reward", settings_.command, settings_.sandbox, kRefused}, settings_.path,
              static_cast<size_t>(settings_.num_workers)) {
    if (settings_.sandbox) say_of(*settings_.sandbox, settings_.path);
  }

  Scores score(std::span<const Sample> samples, int64_t step) const override {
    ProgramScoring scoring(settings_, pool_, samples, step);
    Scores scores = scoring.run(interrupted_);
    if (scoring.answered() > 0) ever_answered_ = true;
    if (!samples.empty() && scoring.failed() == samples.size() && !ever_answered_)
      fail(ErrorKind::config,
           "{}: the program `{}` has never answered: {}. Try it by hand: docs/rewards.md says what it is asked",
           settings_.path, settings_.shown, scores.why_invalid);
    return scores;
  }
  bool compares_answer() const override { return false; }  // it knows what it needs

 private:
  const ProgramSettings settings_;
  const std::atomic<int>* interrupted_;
  mutable std::atomic<bool> ever_answered_ = false;
  mutable program::ProgramPool pool_;
};

void take_python(const Arguments& arguments, ProgramSettings& settings) {
  const std::string text = arguments.text("python", ""), interpreter = arguments.text("interpreter", "python3");
  const program::PythonFunction named = program::python_function(text);
  if (const std::string why = program::why_unreadable(named); !why.empty())
    fail(ErrorKind::config, "{}: {}", arguments.path("python"), why);
  const nlohmann::ordered_json options{{"file", named.file},
                                       {"function", named.function},
                                       {"components", settings.components},
                                       {"conversational", arguments.flag("conversational", false)}};
  settings.shown = interpreter + " " + text;
  settings.command = {interpreter, "-c", kRewardFile, json_text(options)};
  settings.named = {interpreter, named.file};
}

}  // namespace

std::unique_ptr<Environment> make_program_environment(const std::string& name, const nlohmann::ordered_json& section,
                                                      const std::atomic<int>* interrupted, int64_t num_steps) {
  try {
    return std::make_unique<ProgramEnvironment>(program_settings(name, section, num_steps), interrupted);
  } catch (const program::ProgramFailed& error) {
    fail(ErrorKind::config, "env.{}: the program {}", name, error.what());
  }
}

ProgramSettings program_settings(const std::string& name, const nlohmann::ordered_json& section, int64_t num_steps) {
  const bool python = section.contains("python") && !section.at("python").is_null();
  std::vector<std::string> known = {"timeout_s", "startup_timeout_s", "deadline_s",
                                    "retries",   "batch_size",        "components",
                                    "sandbox",   "pass_env",          python ? "python" : "command"};
  if (python) known.insert(known.end(), {"interpreter", "conversational"});
  const Arguments arguments(name, section, known);
  ProgramSettings settings{.path = "env." + name, .num_steps = num_steps};
  settings.components = arguments.texts("components");
  if (std::set<std::string>(settings.components.begin(), settings.components.end()).size() !=
      settings.components.size())
    fail(ErrorKind::config, "{}: a name stands there twice", arguments.path("components"));
  if (python) {
    take_python(arguments, settings);
  } else if (section.at("command").is_string()) {
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
  settings.deadline_s = arguments.seconds("deadline_s", 10 * settings.timeout_s + settings.startup_timeout_s);
  settings.retries = arguments.integer("retries", 1, 0);
  settings.batch_size = arguments.integer("batch_size", python ? 0 : 1, 1);
  const std::string sandbox = arguments.choice("sandbox", "default", {"default", "strict", "none"});
  if (sandbox != "none") {
    settings.sandbox = process::sandbox_of(python ? settings.named : settings.command, sandbox == "strict");
    settings.sandbox->pass_env = arguments.texts("pass_env");
  } else if (arguments.has("pass_env")) {
    fail(ErrorKind::config, "{}: a program without a sandbox is given every variable; remove the key, or sandbox: none",
         arguments.path("pass_env"));
  }
  if (process::program_file(settings.command[0]).empty())
    fail(ErrorKind::config,
         "{}: no program '{}' {}. Give its path (from the folder that hexad is started in), and make the file "
         "executable or name its interpreter first, as [python3, reward.py]",
         arguments.path(python ? "interpreter" : "command"), settings.command[0],
         settings.command[0].find('/') == std::string::npos ? "on PATH" : "that can be run");
  return settings;
}

}  // namespace hexad::environment
