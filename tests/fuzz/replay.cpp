// Feeds every file of a folder to the harness that this is linked with. usage: replay FOLDER
// Each must end within two seconds of CPU time, all of them within 1 GiB of memory.
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/input.hpp"

namespace {

constexpr int kSeconds = 2;
constexpr long kMostKiB = 1 << 20;

char running[4096];  // the input's path, for the signal's handler

void too_slow(int) {
  constexpr char text[] = "replay: more than 2 s of CPU time: ";
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text, sizeof text - 1);
  written = ::write(STDERR_FILENO, running, std::strlen(running));
  written = ::write(STDERR_FILENO, "\n", 1);
  ::_exit(1);
}

void start_clock() {
  const itimerval limit = {{0, 0}, {kSeconds, 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
}

long peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: replay FOLDER\n"), 2;
  std::signal(SIGPROF, too_slow);
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::snprintf(running, sizeof running, "%s", entry.path().c_str());
    std::ifstream in(entry.path(), std::ios::binary);
    // An allocation of exactly the input's size: a read beyond it is found.
    const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
    start_clock();
    LLVMFuzzerTestOneInput(std::vector<uint8_t>(bytes).data(), bytes.size());
    if (peak_kib() > kMostKiB) return std::fprintf(stderr, "replay: %ld KiB of memory: %s\n", peak_kib(), running), 1;
    ++count;
  }
  std::printf("%d inputs, at most %ld MiB\n", count, peak_kib() >> 10);
  return count > 0 ? 0 : 1;
}
