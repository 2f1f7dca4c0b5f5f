// The process of one confined plugin, seen from the engine: its birth, its connections and its end.
#pragma once
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/plugin/confined/wire.hpp"
#include "lib/process/child.hpp"

namespace hexad::plugin::confined {

// Lives until the engine's process ends: it hears of that by its socket and by PR_SET_PDEATHSIG, whichever comes first.
// What it prints goes to this process's standard error. Thread-safe.
class Process {
 public:
  // Starts `program` with the command `plugin-process`. Throws Error(worker).
  explicit Process(const std::filesystem::path& program);
  ~Process() = delete;  // a thread watches it: leaked like everything of a loaded plugin
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // A connection of its own to a thread of its own over there. Throws Closed if the process has ended.
  std::unique_ptr<Channel> connect();

  pid_t pid() const { return child_.pid(); }
  // Ends it, if it still runs; `why` ("did not answer within 5 s") is then what `ending` says.
  void end(const std::string& why);
  // "was killed by signal 11 (Segmentation fault) during compute. It last wrote: ...". Waits a little for an end that
  // is on its way, and brings it about if it does not come.
  std::string ending(std::string_view function);

 private:
  void watch(const process::Descriptor& output);
  process::Descriptor start(const std::filesystem::path& program, const process::Descriptor& control);
  void keep_output(const char* text, size_t size);

  process::Child child_;
  std::unique_ptr<Channel> control_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> sockets_;  // this side's of all connections; shut down at the end so that no caller waits on
  std::optional<process::Exit> status_;  // once it has ended
  std::string why_;                      // we ended it because of this
  std::string tail_;                     // the last that it wrote
};

}  // namespace hexad::plugin::confined
