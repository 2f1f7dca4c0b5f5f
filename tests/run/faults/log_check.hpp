// Whether a run's log answers to a fault: each line of it counts once.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace faults {

class LogCheck {
 public:
  // `worker`: the log of the rank that generates; `controller`: what the program said. `own_servers`: the run starts
  // them again.
  LogCheck(const std::string& worker, const std::string& controller, bool own_servers);

  // 0: the line names the fault; 1: it may; 2: it says what came of it. Ask in this order: a vague question must not
  // take the line that another one needs.
  static int vagueness(const nlohmann::ordered_json& fault);
  // The line that says what was done about the fault (a line of faults.jsonl); empty if there is none.
  std::string answer_to(const nlohmann::ordered_json& fault);

 private:
  struct Line {
    std::string at, text;
    bool counted = false;
  };
  using Parts = std::vector<std::string>;
  std::string take(const std::string& since, const std::vector<Parts>& alternatives);

  std::vector<Line> lines_;
  bool own_servers_;
};

}  // namespace faults
