#include "core/config/algorithm.hpp"

namespace hexad::config {

const char* name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::grpo: return "grpo";
    case Algorithm::sft: return "sft";
    case Algorithm::dpo: return "dpo";
    case Algorithm::rm: return "rm";
  }
  return "";
}

std::vector<Algorithm> algorithm_blocks(const yaml::Node& root) {
  std::vector<Algorithm> found;
  for (const Algorithm algorithm : {Algorithm::grpo, Algorithm::sft, Algorithm::dpo, Algorithm::rm}) {
    const yaml::Node* block = root.child(name_of(algorithm));
    if (block && !block->is_null()) found.push_back(algorithm);
  }
  return found;
}

Algorithm algorithm_of(const yaml::Node& root) {
  const std::vector<Algorithm> found = algorithm_blocks(root);
  return found.empty() ? Algorithm::grpo : found.back();
}

const char* default_loss(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::sft: return "nll";
    case Algorithm::dpo: return "dpo";
    case Algorithm::rm: return "preference";
    case Algorithm::grpo: break;
  }
  return "clipped_pg";
}

bool has_pairs(Algorithm algorithm) { return algorithm == Algorithm::dpo || algorithm == Algorithm::rm; }

}  // namespace hexad::config
