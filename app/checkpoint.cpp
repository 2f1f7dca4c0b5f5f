// hexad checkpoint list|verify DIR
#include <iostream>

#include "app/commands.hpp"
#include "core/checkpoint/store.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"

namespace hexad::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using checkpoint::Inspection;

// The step_N folders of a folder of checkpoints, or the one that it is.
std::vector<fs::path> steps_of(const fs::path& directory) {
  std::error_code unreadable;
  if (!fs::is_directory(directory, unreadable))
    fail(ErrorKind::data, "{}: no such directory. Wanted: a checkpoint_dir of a run, or a step_N in it",
         directory.string());
  for (const char* part : {"training_info.json", "policy"})  // of a damaged one either may be gone
    if (fs::exists(directory / part, unreadable)) return {directory};
  std::vector<fs::path> steps;
  for (const auto& [step, path] : checkpoint::list_steps(directory, /*all=*/true)) steps.push_back(path);
  if (steps.empty())
    fail(ErrorKind::data, "{}: has no checkpoints. Wanted: a checkpoint_dir of a run, or a step_N in it",
         directory.string());
  return steps;
}

// "intact"; "damaged"; "no checksums": sizes alone were compared, or nothing.
const char* state_of(const Inspection& found) {
  return !found.damage.empty() ? "damaged" : checkpoint::has_checksums(found.info.files) ? "intact" : "no checksums";
}

void verify(const fs::path& directory, bool json, int& exit_code) {
  Json all = Json::array();
  for (const fs::path& path : steps_of(directory)) {
    const Inspection found = checkpoint::inspect(path);
    if (!found.damage.empty()) exit_code = 2;
    all.push_back({{"checkpoint", path.string()},
                   {"state", state_of(found)},
                   {"files", found.info.files.size()},
                   {"damage", found.damage}});
    if (json) continue;
    std::cout << one_line(path.string()) << ": " << state_of(found) << '\n';
    for (const std::string& line : found.damage) std::cout << "  " << indented(line) << '\n';
    std::cout.flush();  // the next one may take minutes
  }
  if (json) std::cout << json_text(all, 2) << '\n';
}

void list(const fs::path& directory, bool json) {
  Json all = Json::array();
  for (const fs::path& path : steps_of(directory)) {
    Json entry = {{"checkpoint", path.string()}};
    try {
      const checkpoint::TrainingInfo info = checkpoint::read_info(path);
      uint64_t bytes = 0;
      for (const auto& [file, sum] : info.files) bytes += sum.bytes;
      entry.update(Json{{"step", info.total_steps},
                        {"epoch", info.current_epoch},
                        {"consumed_samples", info.consumed_samples},
                        {"files", info.files.size()},
                        {"bytes", bytes},
                        {"checksums", checkpoint::has_checksums(info.files)},
                        {"metrics", info.metrics}});
      if (!json)
        std::cout << fmt::format(
            "{}: step {}, epoch {}, {} samples; {}\n", one_line(path.string()), info.total_steps, info.current_epoch,
            info.consumed_samples,
            info.files.empty()
                ? "no sizes and no checksums"
                : fmt::format("{} files, {:.1f} MB, {}", info.files.size(), static_cast<double>(bytes) / 1e6,
                              entry.at("checksums") == true ? "checksums" : "no checksums"));
    } catch (const Error& error) {
      entry["problem"] = error.what();
      if (!json) std::cout << one_line(path.string()) << ": " << indented(error.what()) << '\n';
    }
    all.push_back(std::move(entry));
  }
  if (json) std::cout << json_text(all, 2) << '\n';
}

}  // namespace

void add_checkpoint(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string directory;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("checkpoint", "What checkpoints of a run hold, and whether they are intact");
  command->require_subcommand(1);
  CLI::App* listed = command->add_subcommand("list", "Steps, sizes and metrics");
  CLI::App* verified = command->add_subcommand("verify", "Compare every file with the checksum that was saved of it");
  for (CLI::App* each : {listed, verified}) {
    each->add_option("DIR", arguments->directory, "A checkpoint_dir, or one step_N in it")->required();
    each->add_flag("--json", arguments->json, "One JSON array");
  }
  listed->callback([arguments, &exit_code] {
    exit_code = 0;
    list(arguments->directory, arguments->json);
  });
  verified->callback([arguments, &exit_code] {
    exit_code = 0;
    verify(arguments->directory, arguments->json, exit_code);
  });
}

}  // namespace hexad::cli
