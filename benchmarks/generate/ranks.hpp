// The ranks of a generator that several GPUs share: this program once more for each, with a GPU and a place in the
// process group of its own.
#pragma once
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/plugins/native/support/device_runtime.hpp"
#include "tests/support/free_port.hpp"

namespace generate {

class Ranks {
 public:
  // Makes this process one of `count` ranks: rank 0, which starts the others, or what its parent has said.
  Ranks(int count, char** arguments) : count_(count) {
    if (count == 1) return;
    const char* const place = std::getenv(kPlace);
    int port = 0;
    if (place) {
      std::sscanf(place, "%d %d", &rank_, &port);
    } else {
      port = test_support::free_port();
      for (int rank = 1; rank < count; ++rank) start(rank, port, arguments);
    }
    join(port);
  }
  ~Ranks() {
    if (count_ > 1) native_test::rank_runtime()->stop();  // not at exit, when CUDA is on its way out
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }
  Ranks(const Ranks&) = delete;

  int rank() const { return rank_; }
  int count() const { return count_; }

 private:
  static constexpr const char* kPlace = "HEXAD_GENERATE_RANK";  // "RANK PORT"
  static constexpr int64_t kTimeoutMs = 600'000;                // rank 0 checks results while the others wait

  // Its output, but for errors, is nobody's.
  void start(int rank, int port, char** arguments) {
    std::vector<std::string> variables;
    for (char** entry = environ; *entry; ++entry) variables.emplace_back(*entry);
    variables.push_back(std::string(kPlace) + "=" + std::to_string(rank) + " " + std::to_string(port));
    std::vector<char*> pointers;
    for (std::string& variable : variables) pointers.push_back(variable.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    if (posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, pointers.data()) != 0)
      std::fprintf(stderr, "rank %d does not start\n", rank), std::exit(2);
    posix_spawn_file_actions_destroy(&actions);
    children_.push_back(child);
  }

  void join(int port) const {
    const auto library =
        std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib" / "libhexad_runtime.so";
    void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
    using Entry = const hexad_runtime* (*)();
    const auto table = handle ? reinterpret_cast<Entry>(dlsym(handle, "hexad_runtime_table")) : nullptr;
    if (!table) std::fprintf(stderr, "%s\n", dlerror()), std::exit(2);
    hexad_runtime_options options{};
    options.rank = options.local_rank = options.device_id = rank_;
    options.world_size = options.local_size = count_;
    options.device_type = kDLCUDA;
    options.master_address = "127.0.0.1";
    options.master_port = port;
    options.timeout_ms = kTimeoutMs;
    if (table()->start(&options) != HEXAD_OK) std::fprintf(stderr, "%s\n", table()->error()), std::exit(2);
    native_test::rank_runtime() = table();
  }

  int rank_ = 0, count_;
  std::vector<pid_t> children_;
};

}  // namespace generate
