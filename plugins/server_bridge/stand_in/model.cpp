#include "plugins/server_bridge/stand_in/model.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

namespace hexad::bridge::stand_in {
namespace {

uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
double uniform(uint64_t x) { return static_cast<double>(mixed(x) >> 11) * 0x1p-53; }

uint64_t bytes_of(const std::filesystem::path& dir) {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir))
    if (entry.path().extension() == ".safetensors") files.insert(entry.path());
  uint64_t hash = 7;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    for (std::istreambuf_iterator<char> at(file), end; at != end; ++at)
      hash = (hash ^ static_cast<unsigned char>(*at)) * 1099511628211ull;
  }
  return mixed(hash);
}

double log_sum(const std::vector<double>& logits) {
  const double most = *std::ranges::max_element(logits);
  return most + std::log(std::accumulate(logits.begin(), logits.end(), 0.0,
                                         [&](double sum, double x) { return sum + std::exp(x - most); }));
}

// The filters, of logits over the temperature; what they leave out is -inf.
void filter(std::vector<double>& logits, const Sampling& sampling) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return logits[i]; });
  const double norm = log_sum(logits), most = logits[order[0]];
  double before = 0;  // probability of the better ones
  for (size_t rank = 0; rank < order.size(); ++rank) {
    double& logit = logits[order[rank]];
    const double probability = std::exp(logit - norm);
    const bool out = (sampling.top_k > 0 && rank >= static_cast<size_t>(sampling.top_k)) || before >= sampling.top_p ||
                     (sampling.min_p > 0 && logit < most + std::log(sampling.min_p));
    before += probability;
    if (out && rank > 0) logit = -INFINITY;
  }
}

}  // namespace

Model::Model(const std::filesystem::path& dir) : weights_(bytes_of(dir)) {
  std::ifstream file(dir / "config.json");
  const nlohmann::json config = nlohmann::json::parse(file);
  vocab_size_ = config.at("vocab_size").get<int32_t>();
  const nlohmann::json eos = config.value("eos_token_id", nlohmann::json::array());
  for (const nlohmann::json& id : eos.is_array() ? eos : nlohmann::json::array({eos})) eos_.insert(id.get<int32_t>());
}

std::vector<double> Model::logits(const std::vector<int32_t>& tokens) const {
  uint64_t state = weights_;
  for (const int32_t token : tokens) state = mixed(state ^ static_cast<uint64_t>(token));
  std::vector<double> logits(static_cast<size_t>(vocab_size_));
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = 4 * uniform(state + i);
  return logits;
}

Draw Model::next(const std::vector<int32_t>& tokens, const Sampling& sampling, int64_t index) const {
  std::vector<double> logits = this->logits(tokens);
  if (sampling.temperature == 0) {
    const auto best = std::ranges::max_element(logits);
    return {static_cast<int32_t>(best - logits.begin()), *best - log_sum(logits)};
  }
  for (double& logit : logits) logit /= sampling.temperature;
  filter(logits, sampling);
  const double norm = log_sum(logits);
  double left = uniform(sampling.seed ^ mixed(static_cast<uint64_t>(index)));
  int32_t token = 0;
  for (size_t i = 0; i < logits.size() && left >= 0; ++i) {
    if (logits[i] == -INFINITY) continue;
    token = static_cast<int32_t>(i);
    left -= std::exp(logits[i] - norm);
  }
  return {token, logits[static_cast<size_t>(token)] - norm};
}

}  // namespace hexad::bridge::stand_in
