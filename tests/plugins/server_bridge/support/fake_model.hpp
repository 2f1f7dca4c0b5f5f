// The model of the fake servers: the next token is a hash of all tokens before it and of the weights that are loaded.
// A sample is the same, whoever finishes it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

namespace bridge_test {

constexpr int kVocab = 97;

inline uint64_t hash_of(const std::vector<int32_t>& tokens, uint64_t weights) {
  uint64_t h = 1469598103934665603ull ^ weights;
  for (const int32_t token : tokens) h = (h ^ static_cast<uint64_t>(token)) * 1099511628211ull;
  h ^= h >> 29;
  return h * 0xBF58476D1CE4E5B9ull >> 20;
}
inline int32_t next_token(const std::vector<int32_t>& tokens, uint64_t weights) {
  return static_cast<int32_t>(5 + hash_of(tokens, weights) % (kVocab - 5));
}
inline float next_logprob(const std::vector<int32_t>& tokens, uint64_t weights) {
  return -static_cast<float>(hash_of(tokens, weights) % 1024) / 256.0f;
}
// What the weights in a folder do to the model.
inline uint64_t weights_in(const std::filesystem::path& dir) {
  uint64_t h = 7;
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (entry.path().extension() == ".safetensors") files.insert(entry.path());
  }
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    for (std::istreambuf_iterator<char> at(file), end; at != end; ++at)
      h = (h ^ static_cast<uint64_t>(static_cast<unsigned char>(*at))) * 1099511628211ull;
  }
  return h;
}

}  // namespace bridge_test
