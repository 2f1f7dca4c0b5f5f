// Faults of a run, by name: which of them comes at which occasion, told to every server by a folder that they share.
//
// The folder holds schedule.json (what is to happen), faults.jsonl (what did, by time) and samples.jsonl (every
// sequence that a server has drawn to its end).
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace faults {

using Json = nlohmann::ordered_json;

struct Fault {
  std::string name, point, kind;
  int64_t occasion = 1;  // of its point, from 1, in all servers together
  int64_t quiet_ms = 0;  // after it, until another one may come; 0: it comes in the quiet after another, too
};

// Time as in the engine's logs.
std::string timestamp();

class Schedule {
 public:
  explicit Schedule(const std::filesystem::path& folder);

  // The fault that is due at this point, taken by this process alone; null for none. One whose occasion falls into the
  // quiet after another comes at the next occasion. Any thread.
  const Fault* take(const std::string& point);
  // That a fault which was taken has been written down: until then it is another's if this process ends.
  void noted(const Fault& fault);
  // Gives a fault that was taken to the next one, of any process, who asks for it.
  void hand_on(const Fault& fault);
  const Fault* take_handed_on();
  // No fault at all comes for so long.
  void stay_alone(int64_t ms);

  // Appends a line to a file of the folder.
  void note(const char* file, const Json& line) const;

 private:
  struct Shared;  // of all servers
  void open_again(size_t i);
  bool begin_quiet(int64_t ms);

  std::filesystem::path folder_;
  std::vector<Fault> faults_;
  Shared* shared_ = nullptr;
};

}  // namespace faults
