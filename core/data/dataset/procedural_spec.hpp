// What the procedural datasets share: reading their keys, and drawing distinct questions for each side.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset/dataset.hpp"
#include "lib/base/random.hpp"

namespace hexad::data {

// The keys of one procedural dataset. finish() refuses keys that nothing reads.
class ProceduralSpec {
 public:
  ProceduralSpec(const nlohmann::ordered_json& spec, std::string dataset);

  int64_t integer(const std::string& key, int64_t otherwise, int64_t min, int64_t max);
  std::optional<int64_t> optional_integer(const std::string& key, int64_t min);
  double share(const std::string& key, double otherwise);  // in [0, 1)
  std::string text(const std::string& key, const std::string& otherwise);
  std::vector<std::string> texts(const std::string& key, std::vector<std::string> otherwise);
  // A number n as {n, n}, or a list of two.
  std::pair<int64_t, int64_t> range(const std::string& key, std::pair<int64_t, int64_t> otherwise, int64_t min);
  void finish() const;
  [[noreturn]] void refuse(const std::string& key, const std::string& want) const;

 private:
  const nlohmann::ordered_json* find(const std::string& key);

  const nlohmann::ordered_json& spec_;
  std::string dataset_;
  std::vector<std::string> known_;
};

// One drawn question. `key` decides its side and whether it was drawn before.
struct Question {
  std::string key, text, answer;
  std::string side_key;             // what is held out; empty: `key`
  nlohmann::ordered_json metadata;  // of the record; null if none
};

struct Sizes {
  std::optional<int64_t> train, validation;  // absent: up to the default below, fewer if there are fewer questions
  double held_out = 0.1;
  static constexpr int64_t kDefaultTrain = 4096, kDefaultValidation = 256;
};
Sizes read_sizes(ProceduralSpec& spec);

// Draws distinct questions until both sides are full; a sized side that cannot be filled is an Error(config).
DatasetSplit draw(const std::string& task_name, const Sizes& sizes, uint64_t seed,
                  const std::function<Question(CounterRandom&)>& generate);

}  // namespace hexad::data
