// Part 5 of the ABI gate: today's plugins, built for the oldest target, run on the hosts of earlier releases; those
// that need a newer host are refused.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "core/plugin/host/table.hpp"
#include "tests/abi/built_plugin.hpp"
#include "tests/abi/scripts.hpp"

using namespace abi_test;
using namespace hexad::plugin;

namespace {

// One line a release: how far its host table went.
struct Release {
  const char* name;
  uint32_t minor;
  uint32_t host_size;
};
const Release kReleases[] = {
    {"v1.0-rc1", 0, HEXAD_STRUCT_SIZE(hexad_host, extension)},
    {"v1.1-rc1", 1, HEXAD_STRUCT_SIZE(hexad_host, extension)},
    {"v1.2-rc1", 2, HEXAD_STRUCT_SIZE(hexad_host, extension)},
    {"v1.3-rc1", 3, HEXAD_STRUCT_SIZE(hexad_host, extension)},
    {"v1.4-rc1", 4, HEXAD_STRUCT_SIZE(hexad_host, extension)},
};

// The table of an earlier host: today's services up to its size, and behind them memory that nobody may touch.
class OldHost {
 public:
  explicit OldHost(const Release& release) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    memory_ = static_cast<char*>(mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(memory_ != MAP_FAILED);
    REQUIRE(mprotect(memory_ + page_, page_, PROT_NONE) == 0);
    hexad_host today = *host_table(nullptr);
    today.struct_size = release.host_size;
    today.abi_minor = release.minor;
    char* start = memory_ + page_ - release.host_size;
    std::memcpy(start, &today, release.host_size);
    table_ = reinterpret_cast<const hexad_host*>(start);
  }
  ~OldHost() { munmap(memory_, 2 * page_); }
  OldHost(const OldHost&) = delete;
  OldHost& operator=(const OldHost&) = delete;

  const hexad_host* table() const { return table_; }

 private:
  size_t page_;
  char* memory_;
  const hexad_host* table_;
};

struct Example {
  Kind kind;
  const char* name;
  Json config;
  uint32_t target;  // the oldest minor that has its kind
};
const Example kExamples[] = {
    {Kind::loss, "ppo_clip_c", {{"clip_eps", 0.3}}, 0},
    {Kind::backend, "unigram", {{"vocab_size", 4}}, 0},
    {Kind::generator, "unigram_sampler", {{"vocab_size", 4}}, 0},
    {Kind::environment, "concise", {{"token_cost", 0.25}}, 1},
};

}  // namespace

TEST_CASE("today's examples, built for the oldest minor that they can, run on every earlier host as on this one") {
  for (const Release& release : kReleases) {
    for (const Example& example : kExamples) {
      if (example.target > release.minor) continue;
      INFO(std::string(example.name) << " on " << std::string(release.name));
      const OldHost old(release);
      const BuiltPlugin built(fmt::format("target_{}", example.target), example.kind, example.name);
      const Json today = run_script(built.load(), example.config);
      CHECK(today.size() > 5);
      CHECK(run_script(built.load_on(old.table()), example.config) == today);
    }
  }
}

TEST_CASE("a plugin that reads past the end of an earlier host's table is caught") {
  for (const Release& release : kReleases) {
    const OldHost old(release);
    const pid_t child = fork();
    if (child == 0) {
      const rlimit no_core{};
      setrlimit(RLIMIT_CORE, &no_core);
      signal(SIGSEGV, SIG_DFL);
      const char* end = reinterpret_cast<const char*>(old.table()) + old.table()->struct_size;
      [[maybe_unused]] const char next = *static_cast<const volatile char*>(end);
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
  }
}

TEST_CASE("a plugin that needs a newer host is refused in words") {
  const BuiltPlugin built("target_next", Kind::loss, "ppo_clip_c");
  const std::string sentence = fmt::format(
      "libppo_clip_c.so: needs host ABI 1.{}, this engine provides 1.{}. Upgrade the engine or rebuild with "
      "-DHEXAD_TARGET_MINOR={}",
      HEXAD_ABI_MINOR + 1, HEXAD_ABI_MINOR, HEXAD_ABI_MINOR);
  const std::string got = plugin_test::error_of([&] { built.load(); });
  CHECK_MESSAGE(plugin_test::contains(got, sentence), got);
}
