// The comparison with plain autograd can fail: each of these faults is noticed, in either backend.
#include "tests/plugins/backend/broken_group.hpp"
#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/layouts/layout_row.hpp"

using namespace backend_test;
using layouts_test::Row;
using rank_process::Rank;

namespace {

struct Mutation {
  const char* meaning;
  const char* fault;  // of BrokenGroup; "mean of micro-batches": none of a group
  int group_size;     // of the groups that have it
  const char* row;
};

constexpr Mutation kMutations[] = {
    {"nothing is wrong", "", 2, "megatron qwen3_moe pack2 dp4 ep2"},
    {"activations are not summed", "no all-reduce", 2, "megatron llama pack2 tp2"},
    {"activations are not summed over sequence shards", "no reduce-scatter", 2, "megatron llama pack2 tp2 sp"},
    {"the tied embedding's gradients are not summed", "no all-reduce", 2, "megatron qwen3 pack2 pp2"},
    {"data-parallel gradients are not summed", "no reduce-scatter", 2, "megatron llama pack2 dp2"},
    {"data-parallel gradients are summed too often", "scaled reduce-scatter", 2, "megatron llama pack2 dp2"},
    {"a factor of the context-parallel ranks", "scaled reduce-scatter", 2, "megatron llama pack2 cp2"},
    {"a factor of the micro-batches", "mean of micro-batches", 2, "megatron llama pack2 pp2"},
    // Of four ranks, two have the same experts: groups of two reduce the experts' gradients and nothing else.
    {"experts' gradients have a factor of their own", "scaled reduce-scatter", 2, "megatron qwen3_moe pack2 dp4 ep2"},
    {"experts' gradients are not summed", "no reduce-scatter", 2, "megatron qwen3_moe pack2 dp4 ep2"},
    {"tokens do not reach their experts", "no all-to-all", 2, "megatron mixtral pack2 dp2 ep2"},
    {"parts of experts are not summed", "no reduce-scatter", 2, "megatron qwen3_moe pack2 dp4 etp2"},
    {"gradients are not summed", "no reduce-scatter", 2, "dtensor llama pack4 dp2"},
    {"gradients are summed too often", "scaled reduce-scatter", 2, "dtensor llama pack4 dp2"},
    {"a factor of the context-parallel ranks", "scaled reduce-scatter", 2, "dtensor llama pack2 cp2"},
    {"a factor of the micro-batches", "mean of micro-batches", 2, "dtensor qwen3_moe pack2 dp2"},
    {"replicas are not summed", "no all-reduce", 2, "dtensor qwen3 pack2 dp2 hsdp2"},
    {"activations are not summed", "no all-reduce", 2, "dtensor llama pack2 tp2"}};

void broken(const Rank& rank) {
  start_runtime(rank);
  const Mutation& mutation = kMutations[std::stoul(rank.argument)];
  const std::string fault = mutation.fault;
  Row row = Row::parse(mutation.row);
  row.packing.mean = fault == "mean of micro-batches";
  std::vector<c10::intrusive_ptr<BrokenGroup>> kept;
  wrap_group() = [&](void* native) {
    auto* const real = static_cast<c10d::ProcessGroup*>(native);
    kept.push_back(c10::make_intrusive<BrokenGroup>(real, real->getSize() == mutation.group_size ? fault : ""));
    return static_cast<void*>(static_cast<c10d::ProcessGroup*>(kept.back().get()));
  };
  const BoundedErrors errors = three_steps(
      row.model(), row.packing, [&](const auto& dir) { return row.policy(dir); }, row.backend);
  const double grad = sum_over_ranks(errors.grad);  // rank 0's
  INFO("grad " << grad << " norm " << errors.norm);
  if (fault.empty()) {
    CHECK(grad <= errors.bound.grad);
    CHECK(errors.norm <= errors.bound.norm);
  } else {
    CHECK(grad > 1e-2);
    CHECK(errors.norm > 1e-3);
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"broken", broken}});

}  // namespace

TEST_CASE("the comparison notices sums that are dropped or scaled") {
  for (size_t i = 0; i < std::size(kMutations); ++i) {
    INFO(kMutations[i].meaning << ": " << kMutations[i].fault << ", " << kMutations[i].row);
    rank_process::run("broken", Row::parse(kMutations[i].row).world(), std::to_string(i));
  }
}
