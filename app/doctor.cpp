// hexad doctor: what is here, and whether it fits a run
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "app/commands.hpp"
#include "app/console/output.hpp"
#include "app/doctor/disk.hpp"
#include "app/doctor/table.hpp"
#include "app/doctor/topics.hpp"
#include "app/plugin/plugin.hpp"
#include "app/program.hpp"
#include "core/config/typed/system_config.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/installation/home.hpp"
#include "lib/installation/wheel.hpp"
#include "lib/process/program_folders.hpp"

namespace hexad::cli {
namespace {

namespace fs = std::filesystem;
using doctor::Findings;

// Cores that the kernel lets this process run on.
int cores_of_ours() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());  // more cores than the set has room for
}

Findings plugins_here() {
  const plugin::Options options;
  const plugin::Discovery found = plugin::discover(options);
  std::vector<doctor::ListedPlugin> listed;
  for (const plugin::Candidate& each : found.candidates) {
    const plugin::Status status = plugin::status_of(each, options);
    const bool unbuilt = status.state == "not built";
    listed.push_back({each.manifest ? fmt::format("{} {}", kind_name(each.manifest->kind), each.manifest->name)
                                    : each.manifest_path.string(),
                      status.state, unbuilt ? each.manifest->build : status.reason});
  }
  return doctor::plugins(found.folders, listed);
}

// As core/cluster/worker/start.cpp finds it.
Findings libtorch_here(const doctor::Build& build, const fs::path& program) {
  const fs::path runtime = program.parent_path().parent_path() / "lib/libhexad_runtime.so";
  std::error_code unknown;
  std::optional<doctor::Linked> found;
  const installation::Wheel& wheel = installation::libtorch();
  try {
    if (fs::exists(runtime, unknown)) {
      const installation::Site site =
          installation::require(runtime, wheel, installation::sites(installation::home(), wheel));
      found = doctor::linked(runtime, site.libraries(wheel));
    }
  } catch (const Error& error) {
    return {{doctor::Level::problem, "libtorch", error.what(), "hexad setup (of a checkout: tools/setup.sh)"}};
  }
  return doctor::libtorch(build, runtime, found);
}

Findings clock_here(const fs::path& program) {
  struct stat status {};
  return doctor::clock(std::time(nullptr), ::stat(program.c_str(), &status) == 0 ? status.st_mtime : 0);
}

Findings all(const doctor::Build& build) {
  std::error_code unknown;
  const fs::path root = "/", program = fs::read_symlink("/proc/self/exe", unknown), here = fs::current_path(unknown);
  const doctor::Variables variables = doctor::variables_of_ours();
  const auto visible = variables.find("CUDA_VISIBLE_DEVICES");
  const config::ClusterConfig cluster;
  Findings found;
  const auto ask = [&](const char* topic, const std::function<Findings()>& probe) {
    for (doctor::Finding& each : doctor::probed(topic, probe)) found.push_back(std::move(each));
  };
  doctor::Share share;
  doctor::Driver driver;
  ask("cpu", [&] { return share = doctor::read_share(root), Findings(); });
  ask("gpu", [&] { return driver = doctor::ask_driver(), Findings(); });
  ask("hexad", [&] { return doctor::program(build); });
  ask("cpu", [&] { return doctor::processor(root, cores_of_ours(), share); });
  ask("memory", [&] { return doctor::memory(root, share); });
  ask("shm", [&] {
    return doctor::shared_memory(doctor::look_at(root / "dev/shm"),
                                 build.cuda.empty() ? 0 : static_cast<int>(driver.cards.size()));
  });
  ask("disk", [&] { return doctor::current_folder(doctor::look_at(here.empty() ? "." : here)); });
  ask("disk", [&] { return doctor::temporary_files(doctor::look_at(process::temporary_folder())); });
  ask("gpu", [&] {
    return doctor::gpus(root, build, driver,
                        visible == variables.end() ? std::nullopt : std::optional(visible->second));
  });
  ask("libtorch", [&] { return libtorch_here(build, program); });
  ask("plugins", plugins_here);
  ask("limits", [&] { return doctor::limits(root, doctor::limits_of_ours(), share); });
  ask("ports", [&] { return doctor::ports(cluster.master_port_range_low, cluster.master_port_range_high); });
  ask("sandbox", [] { return doctor::sandbox(process::this_kernel()); });
  ask("clock", [&] { return clock_here(program); });
  ask("locale", [&] { return doctor::locale(variables); });
  ask("launcher", [&] { return doctor::launcher(variables); });
  ask("variable", [&] { return doctor::variables(variables); });
  return found;
}

}  // namespace

void add_doctor(CLI::App& app, const char* commit, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "What is here and whether it fits a run: for a bug report, too");
  command->add_flag("--json", *json, "One JSON object");
  command->callback([json, commit, &exit_code] {
    const doctor::Build build = doctor::this_build(commit);
    const Findings found = all(build);
    const bool colours = !*json && console::shows_colours(stdout);
    if (colours) print_raw();  // the texts have been made printable
    std::cout << (*json ? json_text(doctor::json_of(build, found), 2) + '\n' : doctor::table(found, colours));
    exit_code = doctor::count_of(found, doctor::Level::problem) > 0 ? 1 : 0;
  });
}

}  // namespace hexad::cli
