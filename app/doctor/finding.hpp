// What `hexad doctor` says: a line about one thing that a run needs.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hexad::doctor {

enum class Level {
  ok,
  note,     // a run works, and something about it is slower, missing or unusual
  problem,  // some run that this build is for fails
};

struct Finding {
  Level level = Level::ok;
  std::string topic;      // one word, the same for all lines about a thing: "memory"
  std::string text;       // what is here, and of a problem what was wanted
  std::string mend = "";  // how to mend it; only of notes and problems

  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

// "ok", "note", "problem".
const char* name_of(Level level);

// What `probe` finds. One that throws is a note of its topic: the others are still asked.
Findings probed(const std::string& topic, const std::function<Findings()>& probe);

// "1.5 GiB"; below a GiB "512 MiB".
std::string size_text(uint64_t bytes);

}  // namespace hexad::doctor
