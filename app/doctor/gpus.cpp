// NVIDIA's driver and cards against what this program was built for.
#include <algorithm>

#include <fmt/format.h>

#include "app/doctor/small_file.hpp"
#include "app/doctor/topics.hpp"
#include "lib/base/text.hpp"

namespace hexad::doctor {
namespace {

namespace fs = std::filesystem;
constexpr const char* kOnCpus = "until then cluster.device=cpu runs without GPUs";
constexpr int kThousand = 1000;

// Of another's, on the card: a share of its memory that no idle driver takes.
constexpr double kMuch = 0.1;

// Whether a display or compute card of NVIDIA's is on the bus, whatever drives it.
bool is_on_bus(const fs::path& root) {
  std::error_code none;
  for (fs::directory_iterator each(root / "sys/bus/pci/devices", none), end; !none && each != end; each.increment(none))
    if (small_file(each->path() / "vendor").value_or("").starts_with("0x10de") &&
        small_file(each->path() / "class").value_or("").starts_with("0x03"))
      return true;
  return false;
}

// Without a driver's answer: why, and whether that matters.
Findings silent(const fs::path& root, const Build& build, const Driver& driver) {
  const bool is_loaded = small_file(root / "proc/driver/nvidia/version").has_value(), on_bus = is_on_bus(root);
  const Level level = build.cuda.empty() ? Level::note : Level::problem;
  if (is_loaded && driver.why_not.starts_with("no library: "))
    return {{level, "gpu",
             fmt::format("the driver is loaded, and its library is not here ({})",
                         driver.why_not.substr(std::string_view("no library: ").size())),
             "start the container with the driver's files: docker run --gpus all (nvidia-container-toolkit)"}};
  if (is_loaded || (on_bus && !driver.why_not.starts_with("no library: ")))
    return {{level, "gpu", fmt::format("the driver does not answer: {}", driver.why_not),
             driver.why_not.find("mismatch") != std::string::npos
                 ? "the driver was updated under the running kernel: reboot, or load its module again"
                 : fmt::format("see nvidia-smi and dmesg; {}", kOnCpus)}};
  if (on_bus)
    return {{level, "gpu", "there is an NVIDIA card, and no driver for it",
             fmt::format("install NVIDIA's driver{}; {}",
                         build.least_driver() > 0 ? fmt::format(" {} or newer", build.least_driver()) : "", kOnCpus)}};
  return {{Level::ok, "gpu", "no NVIDIA card: runs use CPUs"}};
}

Finding driver_line(const Build& build, const Driver& driver) {
  std::string what = fmt::format("NVIDIA driver {}", driver.version);
  if (driver.cuda > 0) what += fmt::format(", CUDA {}.{}", driver.cuda / kThousand, driver.cuda % kThousand / 10);
  if (build.cuda.empty()) return {Level::ok, "gpu", what};
  const uint64_t got = leading_number(driver.version).value_or(0);
  const int wanted = build.least_driver(), cuda = static_cast<int>(leading_number(build.cuda).value_or(0));
  // NVIDIA's packages cuda-compat lift what an older driver serves.
  if (got >= static_cast<uint64_t>(wanted) || driver.cuda >= cuda * kThousand) return {Level::ok, "gpu", what};
  return {Level::problem, "gpu", fmt::format("{}; this build's CUDA {} wants {} or newer", what, build.cuda, wanted),
          fmt::format("update the driver, or on a data centre's card install cuda-compat-{}-0; {}", cuda, kOnCpus)};
}

Findings card_lines(const Build& build, const Card& card, size_t index) {
  std::string what = fmt::format("card {}: {}, {}, compute capability {}.{}", index, card.name, size_text(card.memory),
                                 card.major, card.minor);
  Findings found;
  if (!build.cuda.empty() && !has_kernels(build.architectures, card.major, card.minor))
    found.push_back({Level::problem, "gpu",
                     fmt::format("{}; this build's kernels are for sm_{} and do not run on it", what,
                                 joined(build.architectures, ", sm_")),
                     "take a card of that kind, leave this one out of CUDA_VISIBLE_DEVICES, or set "
                     "cluster.device=cpu"});
  else
    found.push_back({Level::ok, "gpu", what});
  if (card.mig)
    found.push_back({Level::note, "gpu", fmt::format("card {} is cut into instances (MIG)", index),
                     "a process sees one instance: one rank a host; nvidia-smi -mig 0 joins them again"});
  if (static_cast<double>(card.used) > kMuch * static_cast<double>(card.memory))
    found.push_back({Level::note, "gpu",
                     fmt::format("card {}: {} of its memory are in use by others", index, size_text(card.used)),
                     "nvidia-smi names the processes: end them, or choose others by CUDA_VISIBLE_DEVICES"});
  return found;
}

// What a list of CUDA_VISIBLE_DEVICES leaves: CUDA stops at the first entry that names no card.
Findings visible_line(const std::string& list, size_t cards) {
  size_t seen = 0;
  std::string unknown;
  for (std::string_view rest = list; !rest.empty() && unknown.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view entry = trimmed(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::optional<uint64_t> index = leading_number(entry);
    const bool by_name = entry.starts_with("GPU-") || entry.starts_with("MIG-");
    if (by_name || (index && *index < cards))
      ++seen;
    else
      unknown = entry.empty() ? "an empty entry" : std::string(entry);
  }
  if (unknown.empty() && seen == cards) return {};
  std::string what = fmt::format("CUDA_VISIBLE_DEVICES={} shows {} of {} cards", list, seen, cards);
  if (!unknown.empty() && unknown != "-1")
    return {{Level::problem, "gpu", fmt::format("{}: {} is none, and what follows it is hidden too", what, unknown),
             fmt::format("name cards from 0 to {}, or unset it", cards - 1)}};
  return {{Level::note, "gpu", what, "unset it where a run is to use them all"}};
}

}  // namespace

Findings gpus(const fs::path& root, const Build& build, const Driver& driver,
              const std::optional<std::string>& visible) {
  if (driver.version.empty()) return silent(root, build, driver);
  Findings found = {driver_line(build, driver)};
  for (size_t i = 0; i < driver.cards.size(); ++i)
    for (Finding& line : card_lines(build, driver.cards[i], i)) found.push_back(std::move(line));
  if (!driver.why_not.empty())
    found.push_back({Level::note, "gpu", fmt::format("the driver does not say all: {}", driver.why_not),
                     "see nvidia-smi and dmesg"});
  if (driver.cards.empty())
    found.push_back({build.cuda.empty() ? Level::note : Level::problem, "gpu", "the driver sees no card",
                     fmt::format("in a container: docker run --gpus all; in a job: sbatch --gpus; {}", kOnCpus)});
  else if (build.cuda.empty())
    found.push_back({Level::note, "gpu", "this build uses none of them: it has no CUDA",
                     "make build PRESET=cuda (docs/dependencies.md says what it wants)"});
  else if (visible)
    for (Finding& line : visible_line(*visible, driver.cards.size())) found.push_back(std::move(line));
  return found;
}

}  // namespace hexad::doctor
