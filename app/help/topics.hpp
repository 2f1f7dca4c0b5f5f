// Short texts about what Hexad does: `hexad help TOPIC`. Each is a file of topics/, built into the program.
#pragma once
#include <string>
#include <vector>

namespace hexad::help {

struct Topic {
  std::string name;   // "rewards"
  std::string title;  // "where rewards come from"
  std::string text;   // all of it, its first line "rewards: where rewards come from"
};

// In alphabetical order, with exit-codes.
const std::vector<Topic>& topics();
// null: there is none of this name.
const Topic* find_topic(const std::string& name);

}  // namespace hexad::help
