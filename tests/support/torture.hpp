// kill -9 at random moments of a run, of the controller or of a worker; the run is started again until it ends.
#pragma once
#include <filesystem>
#include <map>
#include <random>

#include "tests/support/toy/program.hpp"

namespace torture {

namespace fs = std::filesystem;

// How often a test kills: HEXAD_TORTURE=N for the long form (`make test-torture`), else a few times.
inline int kills(int otherwise) {
  const char* asked = std::getenv("HEXAD_TORTURE");
  return asked ? std::atoi(asked) : otherwise;
}

// Contents of all files of a folder by their path.
inline std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder)] = toy::read_text(entry.path());
  }
  return files;
}

// Starts the run and kills the controller, or one worker, after so many seconds, if it has not ended by then. No process of it is
// left, and the end came in time.
inline void start_and_kill(const std::vector<std::string>& arguments, double after_s, bool worker) {
  toy::Program program(arguments);
  std::this_thread::sleep_for(std::chrono::duration<double>(after_s));
  const auto workers = toy::workers_of(program.pid());
  if (worker && !workers.empty()) ::kill(workers.back(), SIGKILL);
  if (!worker) ::kill(program.pid(), SIGKILL);
  const toy::Ended ended = program.wait(60);
  INFO(ended.err);
  CHECK((ended.code == 0 || ended.code == (worker ? 4 : -SIGKILL)));
  CHECK(toy::eventually([&] { return std::ranges::none_of(workers, toy::alive); }, 10));
}

// The checkpoints that a killed run has left can be read, the run goes on from the newest, and ends with code 0.
inline void go_on(const std::vector<std::string>& arguments, const fs::path& checkpoints) {
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    if (entry.path().filename().string().starts_with("step_"))
      CHECK_MESSAGE(fs::exists(entry.path() / "training_info.json"), entry.path());
  }
  const toy::Ended ended = toy::run(arguments, "", 120);
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    const std::string name = entry.path().filename();
    CHECK_MESSAGE((!name.starts_with("tmp_") && !name.starts_with("old_")), name);
  }
}

}  // namespace torture
