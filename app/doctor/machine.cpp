// Processor and memory: what the machine has, and what is left of it to this process.
#include <fmt/format.h>

#include "app/doctor/small_file.hpp"
#include "app/doctor/topics.hpp"
#include "lib/base/text.hpp"

namespace hexad::doctor {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kLeastMemory = uint64_t{1} << 29;  // a worker takes 0.15 GiB before it has a model
constexpr uint64_t kLittleMemory = uint64_t{2} << 30;

// Whether the line of flags has all of these words.
bool has(std::string_view flags, std::initializer_list<std::string_view> words) {
  const std::string padded = fmt::format(" {} ", flags);
  for (const std::string_view word : words)
    if (padded.find(fmt::format(" {} ", word)) == padded.npos) return false;
  return true;
}

// The names of what kernels and libraries are chosen for (modeling/op/cpu/isa.hpp has the first two).
std::vector<std::string> instructions(std::string_view flags) {
  std::vector<std::string> names;
  const auto add = [&](const char* name, std::initializer_list<std::string_view> words) {
    if (has(flags, words)) names.emplace_back(name);
  };
  add("AVX2", {"avx2", "fma", "bmi2"});
  add("AVX-512", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  add("AVX-512 BF16", {"avx512_bf16"});
  add("AMX", {"amx_tile", "amx_bf16"});
  add("SHA", {"sha_ni"});
  add("NEON", {"asimd"});  // of ARM, as are these two
  add("SVE", {"sve"});
  add("SHA", {"sha2"});
  return names;
}

}  // namespace

Findings processor(const std::filesystem::path& root, int cores, const Share& share) {
  const std::string text = small_file(root / "proc/cpuinfo").value_or("");
  const bool is_x86 = !line_behind(text, "flags").empty();
  const std::string_view flags = line_behind(text, is_x86 ? "flags" : "Features"),
                         name = line_behind(text, "model name");
  const std::vector<std::string> known = instructions(flags);
  const std::string what = fmt::format("{}, {} core{}, {}", name.empty() ? "processor" : name, cores,
                                       cores == 1 ? "" : "s", known.empty() ? "no vectors" : joined(known));
  Findings found;
  if (is_x86 && !has(flags, {"avx2", "fma", "bmi2"}))
    found.push_back({Level::note, "cpu", what + ": no AVX2, so kernels take their plain form, many times slower",
                     "take another machine; in a virtual one hand the host's processor through (-cpu host)"});
  else
    found.push_back({Level::ok, "cpu", what});
  if (share.cores && *share.cores < cores)
    found.push_back(
        {Level::note, "cpu",
         fmt::format("the control group gives the time of {:.1f} of them: a run starts a thread a core, and "
                     "all are stopped when the time is used up",
                     *share.cores),
         "give the container cores of its own (docker run --cpuset-cpus), or start hexad under taskset"});
  return found;
}

Findings memory(const std::filesystem::path& root, const Share& share) {
  const std::string text = small_file(root / "proc/meminfo").value_or("");
  const std::optional<uint64_t> total = leading_number(line_behind(text, "MemTotal")),
                                available = leading_number(line_behind(text, "MemAvailable"));
  if (!total || !available)
    return {{Level::note, "memory", (root / "proc/meminfo").string() + " does not say how much there is",
             "mount /proc in the container"}};
  uint64_t left = *available * kKiB;
  std::string what = fmt::format("{} free of {}", size_text(left), size_text(*total * kKiB));
  const bool is_bound = share.memory_limit && *share.memory_limit < *total * kKiB;
  if (is_bound) {
    const uint64_t below = share.memory_left.value_or(*share.memory_limit);
    left = std::min(left, below);
    what += fmt::format(", and the control group leaves {} of {}", size_text(below), size_text(*share.memory_limit));
  }
  const char* const mend = is_bound ? "raise the limit of the container or the job (docker run --memory, sbatch --mem)"
                                    : "end other programs, or take a larger machine";
  if (left < kLeastMemory) return {{Level::problem, "memory", what + ", wanted 0.5 GiB for the smallest run", mend}};
  if (left < kLittleMemory) return {{Level::note, "memory", what + ": room for the smallest models alone", mend}};
  return {{Level::ok, "memory", what}};
}

}  // namespace hexad::doctor
