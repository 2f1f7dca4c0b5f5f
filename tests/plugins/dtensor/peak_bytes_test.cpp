// `hexad plan` against runs on CPUs: layouts of ranks, types, recomputation.
#include "tests/plugins/backend/peak_bytes.hpp"
#include "tests/plugins/backend/divisible_model.hpp"

using namespace backend_test;

namespace {

const bool registered = add_scenarios({{"climb", climb}});

PeakCase peak(const std::string& name, int world, const json& keys = json::object(),
              const std::string& family = "llama", const std::string& precision = "float32") {
  PeakCase result{name, world, held_model(divisible_model(family)), policy("", precision)};
  result.policy["dtensor_cfg"].update(keys);
  return result;
}

// The embedding and the head are most of it, and a micro-batch is short.
PeakCase large_vocabulary(const std::string& name, bool tied) {
  PeakCase result = peak(name, 2);
  result.model.update({{"vocab_size", 8192}, {"tie_word_embeddings", tied}});
  result.tokens = 64;
  result.sequences = 1;
  return result;
}

}  // namespace

TEST_CASE("the peak of a rank of dtensor is what the plan says") {
  check_peak(peak("one rank", 1));
  check_peak(peak("one rank, recomputed", 1, {{"activation_checkpointing", true}}));
  check_peak(peak("one rank, bf16", 1, json::object(), "llama", "bfloat16"));
  check_peak(peak("one rank, norms of heads", 1, json::object(), "qwen3"));
  check_peak(peak("FSDP2", 2));
  check_peak(peak("FSDP2, bf16", 2, json::object(), "llama", "bfloat16"));
  check_peak(peak("TP2", 2, {{"tensor_parallel_size", 2}}));
  check_peak(peak("TP2, sequence parallel", 2, {{"tensor_parallel_size", 2}, {"sequence_parallel", true}}));
  check_peak(peak("CP2", 2, {{"context_parallel_size", 2}}));
  check_peak(peak("TP2 DP2", 4, {{"tensor_parallel_size", 2}}));
  check_peak(large_vocabulary("FSDP2, large vocabulary", false));
  check_peak(large_vocabulary("FSDP2, large vocabulary that the head shares", true));
}
