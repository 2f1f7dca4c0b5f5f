// The servers that this rank starts: each is started again when it ends, and when it hangs.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plugins/server_bridge/fleet/fleet.hpp"

namespace hexad::bridge {

// On the loop's thread, but for the constructor and the destructor.
class Nursery {
 public:
  // `log_dir` exists; `scratch` goes if this process is killed. `label` tells the ranks of a run apart: in names of
  // logs, and where the search for ports begins.
  Nursery(EventLoop& loop, Fleet& fleet, const Dialect& dialect, const Settings& settings, std::string log_dir,
          std::string scratch, int label, Log log);

  // Starts all, from this folder, or throws and has none; later starts are from the latest one. Again: names the folder
  // alone.
  void start(const std::string& model_dir);
  // Whether one that has not answered yet was started from this folder, and may be reading it.
  bool starts_from(const std::string& model_dir) const;

 private:
  struct Nest {
    std::unique_ptr<server::Child> child;  // null: it is to be started
    std::string log;
    std::string model_dir;    // that it was started from
    int port = 0;             // that it was started for
    uintmax_t log_begin = 0;  // bytes that those before it have written
    Backoff backoff;
    Clock::time_point since;  // its start, or when it was last well
    Clock::time_point next_start;
    int ends = 0;  // of its processes, while no server of this rank has ever been up
  };
  int own_port(int64_t place) const;
  void hatch(size_t index);
  void look_after(size_t index);
  void look_around();
  // What never starts is not tried until the deadline: all servers have ended again and again, and none has been up.
  void give_up_if_hopeless(const std::string& why);

  EventLoop& loop_;
  Fleet& fleet_;
  const Dialect& dialect_;
  const Names names_;
  const Settings& settings_;
  std::string log_dir_, scratch_;
  int label_;
  Log log_;
  std::string model_dir_;
  std::vector<Nest> nests_;
};

}  // namespace hexad::bridge
