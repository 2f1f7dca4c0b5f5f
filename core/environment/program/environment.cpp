#include "core/environment/program/environment.hpp"

#include "lib/base/error.hpp"
#include "core/environment/program/scoring.hpp"

namespace hexad::environment {
namespace {

class ProgramEnvironment : public Environment {
 public:
  ProgramEnvironment(ProgramSettings settings, const std::atomic<int>* interrupted)
      : settings_(std::move(settings)),
        interrupted_(interrupted),
        pool_(settings_.command, settings_.path, static_cast<size_t>(settings_.num_workers)) {}

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

}  // namespace hexad::environment
