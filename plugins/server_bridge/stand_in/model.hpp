// A language model of no size: its logits are hashes of the tokens before and of the bytes of its weights.
#pragma once
#include <cstdint>
#include <filesystem>
#include <set>
#include <vector>

namespace hexad::bridge::stand_in {

// Sampling keys, as vLLM calls them.
struct Sampling {
  double temperature = 1, top_p = 1, min_p = 0;
  int64_t top_k = 0;
  uint64_t seed = 0;
};

struct Draw {
  int32_t token = 0;
  double logprob = 0;  // of the distribution that it was drawn from; of a greedy one, the model's own
};

class Model {
 public:
  // Hugging Face directory: vocab_size and eos_token_id of config.json, the bytes of the safetensors files. Throws
  // std::exception if it cannot be read.
  explicit Model(const std::filesystem::path& dir);

  // The same model with weights of this hash.
  Model with_weights(uint64_t hash) const {
    Model other = *this;
    other.weights_ = hash;
    return other;
  }

  // Draw `index` of a request, after these tokens.
  Draw next(const std::vector<int32_t>& tokens, const Sampling& sampling, int64_t index) const;
  const std::set<int32_t>& eos() const { return eos_; }

 private:
  std::vector<double> logits(const std::vector<int32_t>& tokens) const;

  uint64_t weights_ = 0;
  int32_t vocab_size_ = 0;
  std::set<int32_t> eos_;
};

}  // namespace hexad::bridge::stand_in
