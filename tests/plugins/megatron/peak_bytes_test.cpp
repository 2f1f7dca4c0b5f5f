// `hexad plan` against runs on CPUs: layouts of ranks, types, recomputation.
#include "tests/plugins/backend/peak_bytes.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;

namespace {

const bool registered = add_scenarios({{"climb", climb}});

PeakCase peak(const std::string& name, int world, const json& keys = json::object(),
              const std::string& family = "llama", const std::string& precision = "float32") {
  return {name, world, held_model(megatron_model(family)), megatron_policy("", keys, precision)};
}

}  // namespace

TEST_CASE("the peak of a rank of megatron is what the plan says: types and recomputation") {
  check_peak(peak("one rank", 1));
  check_peak(peak("one rank, recomputed", 1, {{"activation_checkpointing", true}}));
  check_peak(peak("one rank, bf16", 1, json::object(), "llama", "bfloat16"));
  check_peak(peak("one rank, norms of heads", 1, json::object(), "qwen3"));
}

TEST_CASE("the peak of a rank of megatron is what the plan says: layouts") {
  check_peak(peak("PP2", 2, {{"pipeline_model_parallel_size", 2}}));
  check_peak(peak("TP2 PP2", 4, {{"tensor_model_parallel_size", 2}, {"pipeline_model_parallel_size", 2}}));
  PeakCase context = peak("CP2", 2, {{"context_parallel_size", 2}});
  context.policy["sequence_packing"] = {{"enabled", true}};
  context.policy["make_sequence_length_divisible_by"] = 4;
  check_peak(context);
  check_peak(peak("DP2", 2));
  check_peak(peak("TP2", 2, {{"tensor_model_parallel_size", 2}}));
  check_peak(peak("TP2, sequence parallel", 2, {{"tensor_model_parallel_size", 2}, {"sequence_parallel", true}}));
}
