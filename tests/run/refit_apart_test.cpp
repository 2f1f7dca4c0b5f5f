// A refit between ranks: what the generators hold is what the trainers hand out, bit for bit, from every layout.
#include "core/cluster/refit/refit.hpp"

#include "core/cluster/policy.hpp"
#include "core/cluster/process/start_workers.hpp"
#include "core/config/check.hpp"
#include "tests/run/first_party.hpp"

using namespace hexad;
using first_party::source;

namespace {

// Sequences for one update, which moves every weight.
data::Batch rollouts() {
  std::vector<int64_t> lengths(16, 6), ids;
  for (int i = 0; i < 16 * 6; ++i) ids.push_back(i * 7 % 12);
  data::Batch batch = data::Batch::of_lengths(lengths);
  batch.set("input_ids", data::Tensor::of(ids), data::Axis::token);
  for (const char* name : {"prev_logprobs", "generation_logprobs", "reference_policy_logprobs"})
    batch.set(name, data::Tensor::full(data::DType::f32, {96}, -1), data::Axis::token);
  batch.set("advantages", data::Tensor::full(data::DType::f32, {96}, 1), data::Axis::token);
  batch.set("token_mask", data::Tensor::full(data::DType::f32, {96}, 1), data::Axis::token);
  batch.set("sample_mask", data::Tensor::full(data::DType::f32, {16}, 1), data::Axis::sample);
  return batch;
}

struct Run {
  explicit Run(const std::vector<std::string>& overrides)
      : resolved(config::resolve(source() + "/configs/quickstart.yaml", overrides)),
        run(config::run_config(resolved)),
        placement(cluster::placement_of(run)),
        workers(&spawner, options()) {
    started =
        cluster::start_workers(workers, placement, resolved.root, run, {run.policy.backend, "clipped_pg", "native"},
                               source() + "/configs/quickstart_model", "");
    started.resize(static_cast<size_t>(placement.trainers.count));
  }
  cluster::WorkerGroupOptions options() const {
    cluster::WorkerGroupOptions options;
    options.world_size = placement.world();
    options.program = toy::hexad();
    options.log_dir = dir.path();
    return options;
  }

  toy::TempDir dir;
  cluster::Spawner spawner;
  config::Resolved resolved;
  config::RunConfig run;
  cluster::Placement placement;
  cluster::WorkerGroup workers;
  std::vector<cluster::protocol::Start::Reply> started;
};

int64_t total(const std::vector<int64_t>& numbers) {
  int64_t sum = 0;
  for (const int64_t number : numbers) sum += number;
  return sum;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("weights arrive bit for bit from every layout, and every trainer sends its share") {
  const std::string megatron = "policy.megatron_cfg.enabled=true";
  const std::vector<std::vector<std::string>> layouts = {
      {"++policy.dtensor_cfg.tensor_parallel_size=1"},
      {"++policy.dtensor_cfg.tensor_parallel_size=2"},
      {megatron, "++policy.megatron_cfg.tensor_model_parallel_size=2"},
      {megatron, "++policy.megatron_cfg.pipeline_model_parallel_size=2"},
  };
  for (std::vector<std::string> layout : layouts) {
    CAPTURE(layout.back());
    for (const char* more :
         {"cluster.gpus_per_node=4", "++cluster.device=cpu", "policy.train_global_batch_size=16",
          "policy.train_micro_batch_size=8", "grpo.num_prompts_per_step=2", "grpo.num_generations_per_prompt=8",
          "++policy.generation.colocated.enabled=false", "++policy.generation.colocated.resources.gpus_per_node=2"})
      layout.emplace_back(more);
    Run run(layout);
    cluster::Policy policy(run.workers, run.run.policy, run.started);
    cluster::Refit refit(run.workers, run.placement);
    refit.run(1);
    policy.train(rollouts(), 1e-2, 0);
    const auto before = run.workers.call(run.workers.all(), cluster::protocol::WeightSums{});
    refit.run(2);
    const auto after = run.workers.call(run.workers.all(), cluster::protocol::WeightSums{});
    int64_t bytes = 0;
    for (const auto& [name, weight] : after[0].sums) {
      CAPTURE(name);
      bytes += weight.bytes;
      const auto reported = [metric = "weight_sum/" + name](const auto& replies, int rank) {
        return static_cast<int64_t>(replies.at(static_cast<size_t>(rank)).metrics.values().at(metric));
      };
      for (int rank = 2; rank < 4; ++rank) {
        CHECK(reported(after, rank) == weight.sum);
        CHECK(reported(before, rank) != weight.sum);
      }
    }
    const std::vector<int64_t>& sent = refit.bytes_sent();
    CHECK(bytes > 0);
    CHECK(total(sent) == 2 * bytes);
    CHECK(sent[2] + sent[3] == 0);
    for (int rank = 0; rank < 2; ++rank) CHECK(sent[static_cast<size_t>(rank)] > bytes / 2);
  }
}

TEST_SUITE_END();
