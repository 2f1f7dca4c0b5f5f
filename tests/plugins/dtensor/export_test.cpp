// What the instance says of itself: description, weight layout, weights in buckets, memory.
#include "modeling/parallel/placement.hpp"
#include "tests/plugins/backend/fixed_order.hpp"
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

// The rows of `full` that the slice describes.
at::Tensor rows_of(const hexad_weight_slice& slice, const at::Tensor& full) {
  REQUIRE(slice.ndim == full.dim());
  for (int32_t d = 0; d < slice.ndim; ++d) {
    CHECK(slice.global_shape[d] == full.size(d));
    if (d > 0) CHECK((slice.offsets[d] == 0 && slice.shape[d] == full.size(d)));
  }
  return full.narrow(0, slice.offsets[0], slice.shape[0]);
}

hexad_weight_list layout_of(Instance& backend) {
  hexad_weight_list list{};
  list.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
  backend.check(vtable().weight_layout(backend.self(), backend.call(), &list));
  return list;
}

void slices_match(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  const Weights full = write_tiny_model(dir.path(), "qwen3");
  Instance backend(policy(dir.path()));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  CHECK(same(backend.weights(HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_FULL, 1), full));
  CHECK(same(backend.weights(HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_FULL, 1 << 30), full));

  const Weights shards = backend.weights(HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_SHARD, 700);
  const hexad_weight_list layout = layout_of(backend);
  CHECK(layout_of(backend).slices == layout.slices);  // valid for the life of the instance
  CHECK(static_cast<size_t>(layout.count) == shards.size());
  for (int64_t i = 0; i < layout.count; ++i) {
    const hexad_weight_slice& slice = layout.slices[i];
    CHECK(slice.tensor == nullptr);
    const hexad::modeling::Range mine =
        hexad::modeling::chunk_range(full.at(slice.name).size(0), rank.world, rank.rank);
    CHECK((slice.offsets[0] == mine.begin && slice.shape[0] == mine.size() && mine.size() > 0));
    CHECK(shards.at(slice.name).equal(rows_of(slice, full.at(slice.name))));
  }
  runtime_test::runtime().stop();
}

// A router's expert bias: exact under bf16, of slices the first rank's alone, unmoved by a step, never a gradient.
void expert_bias(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  const Weights full = write_tiny_model(dir.path(), "deepseek_v3");
  Instance backend(policy(dir.path(), "bfloat16"));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const std::string name = "model.layers.2.mlp.gate.e_score_correction_bias";
  auto batches = backend.batches(make_sequences(3, 1), {3, false, false});
  backend.train(batches, 10, 1);
  CHECK(backend.weights(HEXAD_WEIGHTS_GRADIENTS).count(name) == 0);
  backend.keep(HEXAD_WEIGHTS_REFERENCE);
  backend.step(1e-2, 0.1, 1.0);
  for (int32_t which : {HEXAD_WEIGHTS_CURRENT, HEXAD_WEIGHTS_REFERENCE}) {
    const Weights weights = backend.weights(which);
    CHECK(weights.size() == full.size());
    CHECK(weights.at(name).equal(full.at(name)));
    CHECK(bool(weights.at("model.layers.2.mlp.gate.weight").scalar_type() == at::kBFloat16));
  }
  CHECK(backend.weights(HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_SHARD).count(name) == size_t(rank.rank == 0));
  int64_t listed = 0;
  const hexad_weight_list layout = layout_of(backend);
  for (int64_t i = 0; i < layout.count; ++i) listed += layout.slices[i].name == name;
  CHECK(listed == (rank.rank == 0));
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"slices_match", slices_match}, {"expert_bias", expert_bias}});

hexad_memory_stats memory_of(Instance& backend) {
  hexad_memory_stats stats{};
  stats.struct_size = HEXAD_STRUCT_SIZE(hexad_memory_stats, reserved_bytes);
  backend.check(vtable().memory(backend.self(), backend.call(), &stats));
  return stats;
}

}  // namespace

TEST_CASE("exported slices are the layout's, and together the whole weights") {
  for (int world : {1, 3, 4}) rank_process::run("slices_match", world);
}

TEST_CASE("a router's expert bias is whole, exact and unmoved") {
  for (int world : {1, 2}) rank_process::run("expert_bias", world);
}

TEST_CASE("the description counts parameters and names outputs") {
  const TemporaryDir dir;
  int64_t parameters = 0;
  for (const auto& [name, weight] : write_tiny_model(dir.path(), "llama")) parameters += weight.numel();
  Instance backend((one_rank(), policy(dir.path())));
  hexad_backend_info info{};
  info.struct_size = HEXAD_STRUCT_SIZE(hexad_backend_info, num_inputs);
  backend.check(vtable().describe(backend.self(), backend.call(), &info));
  CHECK(info.num_parameters == parameters);
  CHECK((info.dp_rank == 0 && info.dp_size == 1 && info.tp_size == 1 && info.counts_loss == 1));
  CHECK(std::vector<std::string>(info.outputs, info.outputs + info.num_outputs) ==
        std::vector<std::string>{"logprobs", "entropy", "logprobs_unfiltered"});
  CHECK(std::vector<std::string>(info.inputs, info.inputs + info.num_inputs) == std::vector<std::string>{"input_ids"});
}

TEST_CASE("the memory report follows gradients, optimizer state and kept weights") {
  const TemporaryDir dir;
  write_tiny_model(dir.path(), "llama");
  Instance backend((one_rank(), policy(dir.path(), "bfloat16")));
  const int64_t parameters = memory_of(backend).parameter_bytes;
  CHECK((memory_of(backend).gradient_bytes == 0 && memory_of(backend).optimizer_bytes == 0));
  auto batches = backend.batches(make_sequences(3, 1), {3, false, false});
  backend.train(batches, 10, 1);
  CHECK(memory_of(backend).gradient_bytes == parameters);
  backend.step(1e-3, 0, 0);
  CHECK((memory_of(backend).gradient_bytes == 0 && memory_of(backend).optimizer_bytes == 2 * parameters));
  CHECK(memory_of(backend).parameter_bytes == parameters + parameters / 2);  // the weights that it computed with
  backend.keep(HEXAD_WEIGHTS_REFERENCE);
  CHECK(memory_of(backend).parameter_bytes == 2 * parameters);
}

TEST_CASE("offloading and CPU offload change no result") {
  const FixedOrder order;
  const TemporaryDir dir;
  write_tiny_model(dir.path(), "llama");
  json offloaded = policy(dir.path());
  offloaded["dtensor_cfg"]["cpu_offload"] = true;
  Instance plain((one_rank(), policy(dir.path()))), moved(offloaded);
  for (Instance* backend : {&plain, &moved}) {
    auto batches = backend->batches(make_sequences(3, 1), {3, false, false});
    for (int step = 0; step < 2; ++step) {
      backend->train(batches, 10, 1);
      backend->step(1e-3, 0, 0);
      const uint64_t all = HEXAD_OFFLOAD_PARAMS | HEXAD_OFFLOAD_OPTIMIZER | HEXAD_OFFLOAD_REFERENCE;
      backend->check(vtable().offload(backend->self(), backend->call(), all));
      backend->check(vtable().onload(backend->self(), backend->call(), all));
    }
  }
  // Offloaded masters are updated on the host, which beside a GPU rounds otherwise.
  CHECK(relative_error(plain.weights(HEXAD_WEIGHTS_CURRENT), moved.weights(HEXAD_WEIGHTS_CURRENT)) <=
        (test_device::is_gpu() ? 1e-6 : 0));
}
