// Metrics as plugins report them, reduced over micro-batches, ranks and global batches.
#pragma once
#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace hexad::plugin {

enum class ReduceAs { sum = 0, mean = 1, min = 2, max = 3, last = 4 };  // HEXAD_REDUCE_*

// name -> (value, weight) with the reduction that its plugin declared.
class MetricSum {
 public:
  // One observation. mean: value is the weighted sum. min, max: weight 0 is no observation.
  void add(const std::string& name, double value, double weight, ReduceAs reduce);
  // An observation whose value is the mean itself.
  void set(const std::string& name, double value, ReduceAs reduce) { add(name, value, 1, reduce); }
  // The form that crosses processes: {name: [value, weight, reduce]}; non-finite numbers are texts.
  void add(const nlohmann::ordered_json& observed);
  nlohmann::ordered_json to_json() const;
  void add(const MetricSum& other) { merge_global_batch(other, 1); }
  // Adds the metrics of one of `count` optimizer steps of a rollout: sums count a count-th part each, as NeMo-RL
  // divides every metric that is no extremum by the number of global batches.
  void merge_global_batch(const MetricSum& other, size_t count);

  bool contains(const std::string& name) const { return entries_.contains(name); }
  std::map<std::string, double> values() const;

 private:
  struct Entry {
    double value = 0, weight = 0;
    ReduceAs reduce = ReduceAs::sum;
    bool observed = false;
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace hexad::plugin
