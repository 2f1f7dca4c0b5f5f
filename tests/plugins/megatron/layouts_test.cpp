// Loss, log-probs, gradients and updated weights are those of plain autograd on one rank, whatever the layout.
#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

constexpr double kTolerance = 1e-5;
// A key bias has no gradient but rounding (softmax does not see it), which Adam divides by its own size.
constexpr double kWeightTolerance = 5e-5;

struct Layout {
  std::string family;
  Packing packing;
  json sizes;
};

json sizes(int tp, int pp, bool sequence_parallel = false, json more = json::object()) {
  json result = {{"tensor_model_parallel_size", tp},
                 {"pipeline_model_parallel_size", pp},
                 {"sequence_parallel", sequence_parallel}};
  result.update(more);
  return result;
}

// Experts: expert parallel, and expert tensor parallel (0: as tensor parallel).
json experts(int tp, int pp, int ep, int etp = 0, json more = json::object()) {
  more["expert_model_parallel_size"] = ep;
  if (etp > 0) more["expert_tensor_parallel_size"] = etp;
  return sizes(tp, pp, tp > 1, more);
}

const json kRecompute = {{"activation_checkpointing", true}};

// By the number of ranks.
std::vector<Layout> layouts(int world) {
  const Packing four{4, false, false}, one{1, false, false}, padded{3, true, false};
  const json virtual_stages = {{"virtual_pipeline_model_parallel_size", 2}};
  const json context = {{"context_parallel_size", 2}};
  const auto exchange = [](int ranks, const json& type, const json& hierarchy = nullptr) {
    return json{
        {"context_parallel_size", ranks}, {"cp_comm_type", type}, {"hierarchical_context_parallel_sizes", hierarchy}};
  };
  const json uneven = {{"num_layers_in_first_pipeline_stage", 1}};
  const json buckets = {{"distributed_data_parallel_config", {{"bucket_size", 300}}}};
  const json gather = {{"moe_token_dispatcher_type", "allgather"}};
  switch (world) {
    case 1: return {{"llama", four, sizes(1, 1)}, {"qwen3", padded, sizes(1, 1, false, kRecompute)}};
    case 2:
      return {{"llama", four, sizes(1, 1)},
              {"qwen3", one, sizes(1, 1, false, buckets)},
              {"llama", four, sizes(2, 1)},
              {"qwen3", padded, sizes(2, 1)},
              {"llama", four, sizes(2, 1, true)},
              {"qwen3", one, sizes(2, 1, true)},
              {"llama", one, sizes(1, 2)},
              {"qwen3", four, sizes(1, 2)},
              {"mistral", one, sizes(1, 2, false, uneven)},
              {"qwen2", one, sizes(1, 2, false, kRecompute)},
              {"llama", four, sizes(1, 1, false, context)},
              {"mistral", padded, sizes(1, 1, false, context)},
              {"mistral", four, sizes(1, 1, false, exchange(2, "all_gather"))},
              {"qwen3", padded, sizes(1, 1, false, exchange(2, {"a2a", "p2p", "all_gather", "a2a"}))},
              {"qwen3_moe", one, sizes(1, 1, false, exchange(2, "a2a"))},
              {"qwen3_moe", four, sizes(1, 1)},
              {"qwen3_moe", one, sizes(1, 2)},
              {"qwen3_moe", four, sizes(1, 1, false, context)},
              {"qwen3_moe", four, experts(1, 1, 2)},
              {"qwen3_moe", one, experts(1, 1, 2, 0, kRecompute)},
              {"mixtral", one, experts(1, 1, 2, 0, buckets)},
              {"qwen2_moe", four, experts(1, 1, 2, 0, gather)},
              {"qwen3_moe", padded, experts(1, 1, 1, 2)},
              {"qwen3_moe", four, experts(2, 1, 1)},
              {"qwen2_moe", one, experts(2, 1, 2, 1)},
              {"qwen3_moe", four, experts(1, 1, 2, 0, context)}};
    case 4:
      return {{"llama", four, sizes(4, 1)},
              {"qwen2", one, sizes(4, 1, true)},
              {"qwen3", one, sizes(2, 2, true)},
              {"llama", one, sizes(2, 2)},
              {"qwen3", one, sizes(1, 2, false, virtual_stages)},
              {"mistral", one, sizes(1, 4)},
              {"qwen3", one, sizes(1, 4)},
              {"llama", padded, sizes(2, 1, true)},
              {"qwen3", four, sizes(1, 2)},
              {"llama", four, sizes(1, 1, false, buckets)},
              {"qwen3", four, sizes(2, 1, true, context)},
              {"llama", one, sizes(1, 2, false, context)},
              {"mistral", four, sizes(1, 1, false, {{"context_parallel_size", 4}})},
              {"mistral", four, sizes(1, 1, false, exchange(4, "a2a"))},  // more ranks than key/value heads
              {"llama", one, sizes(1, 1, false, exchange(4, "a2a+p2p", {2, 2}))},
              {"qwen3", padded, sizes(2, 1, true, exchange(2, "a2a"))},
              {"qwen2", four, sizes(2, 1, false, exchange(2, "all_gather"))},
              {"qwen2", one, sizes(1, 1, false, context)},
              {"qwen3_moe", four, experts(1, 1, 2)},
              {"qwen3_moe", one, experts(1, 1, 4)},
              {"qwen2_moe", four, experts(2, 1, 2)},
              {"mixtral", one, experts(2, 1, 2, 1)},
              {"qwen3_moe", one, experts(1, 2, 2, 0, kRecompute)},
              {"qwen3_moe", four, experts(1, 1, 2, 2, gather)},
              {"mixtral", four, experts(2, 1, 2, 1, context)}};
    default:
      return {{"qwen3", one, sizes(2, 2, true)},
              {"llama", one, sizes(2, 2, true, virtual_stages)},
              {"qwen3", four, sizes(2, 2, true, context)},
              {"llama", padded, sizes(2, 1, false, context)},
              {"qwen3_moe", one, experts(2, 2, 2)},
              {"qwen2_moe", four, experts(2, 1, 2, 1, context)},
              {"qwen3_moe", one, experts(1, 2, 2, 0, virtual_stages)}};
  }
}

void agrees(const Rank& rank) {
  start_runtime(rank);
  for (const Layout& layout : layouts(rank.world)) {
    const json model = has_experts(layout.family) ? expert_model(layout.family) : megatron_model(layout.family);
    const Errors errors =
        three_steps(model, layout.packing, [&](const auto& dir) { return megatron_policy(dir, layout.sizes); });
    INFO(layout.family << ", " << layout.packing.sequences << " in a micro-batch, " << layout.sizes.dump() << ": loss "
                       << errors.loss << " grad " << errors.grad << " weight " << errors.weight << " logprob "
                       << errors.logprob);
    CHECK(errors.loss <= kTolerance);
    CHECK(errors.grad <= kTolerance);
    CHECK(errors.weight <= kWeightTolerance);
    CHECK(errors.norm <= kTolerance);
    CHECK(errors.logprob <= kTolerance);
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"agrees", agrees}});

}  // namespace

TEST_CASE("layouts of 1, 2, 4 and 8 ranks agree with plain autograd") {
  for (int world : {1, 2, 4, 8}) rank_process::run("agrees", world);
}
