// What environments report beside their scores.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace hexad::rollout {

// Of several calls, environments, turns and rollouts of a step: counts (num_*, of a whole environment or of a part of it)
// as their sum, the rest as the mean over the samples that it was reported of.
class Reported {
 public:
  void add(const std::map<std::string, double>& metrics, int64_t samples);
  void add(const Reported& more);
  std::map<std::string, double> values() const;

 private:
  struct Entry {
    double sum = 0, mean = 0, samples = 0;
  };
  void add(const std::string& name, const Entry& more);
  std::map<std::string, Entry> entries_;
};

}  // namespace hexad::rollout
