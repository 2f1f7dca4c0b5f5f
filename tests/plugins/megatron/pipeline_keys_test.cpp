// Keys that say where ranks and micro-batches of a pipeline go, and change no number.
#include "tests/modeling/support/allocated_bytes.hpp"
#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/megatron_policy.hpp"

using namespace backend_test;
using hexad::modeling::AllocatedBytes;
using rank_process::Rank;

namespace {

json with(json keys, const json& more) {
  keys.update(more);
  return keys;
}

const json kTwo = {{"pipeline_model_parallel_size", 2}},
           kChunks = with(kTwo, {{"virtual_pipeline_model_parallel_size", 2}});

void agrees(const json& keys) {
  const BoundedErrors errors = three_steps(megatron_model("llama"), {2, false, false},
                                           [&](const auto& dir) { return megatron_policy(dir, keys); });
  INFO(keys.dump() << ": loss " << errors.loss << " grad " << errors.grad);
  CHECK(errors.loss <= errors.bound.loss);
  CHECK(errors.grad <= errors.bound.grad);
  CHECK(errors.logprob <= errors.bound.logprob);
}

// Of a call with eight micro-batches, all alike, so that the work memory of a layer is too: bytes beyond those before.
// The least of five calls: what is being sent holds its memory until the other rank, which may be late, has taken it.
int64_t peak(const json& keys) {
  const TemporaryDir folder;
  write_model(folder.path(), megatron_model("llama"));
  Instance backend(megatron_policy(folder.path(), keys));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const std::vector<Sequence> alike(8, make_sequences(1, 0)[0]);
  auto batches = backend.batches(alike, {1, false, false});
  backend.train(batches, 100, 1);  // gradients and leaves are there
  int64_t least = INT64_MAX;
  for (int call = 0; call < 5; ++call) {
    const AllocatedBytes bytes;
    backend.train(batches, 100, 1);
    least = std::min<int64_t>(least, bytes.peak());
  }
  return least;
}

std::string refusal(const json& keys) {
  const TemporaryDir folder;
  write_model(folder.path(), megatron_model("llama"));
  const Instance backend(megatron_policy(folder.path(), keys));
  CHECK(backend.code() == HEXAD_INVALID_ARGUMENT);
  return backend.error();
}

void orders_ranks(const Rank& rank) {
  start_runtime(rank);
  const auto place = [&](const json& keys) {
    const TemporaryDir folder;
    write_model(folder.path(), megatron_model("llama"));
    Instance backend(megatron_policy(folder.path(), keys));
    REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
    return backend.info().dp_rank;
  };
  const json stages_inside = with(kTwo, {{"rank_order", "tp-cp-pp-ep-dp"}});
  CHECK(place(kTwo) == rank.rank % 2);
  CHECK(place(stages_inside) == rank.rank / 2);
  agrees(stages_inside);
  runtime_test::runtime().stop();
}

void groups_micro_batches(const Rank& rank) {
  start_runtime(rank);
  const json groups = with(kChunks, {{"microbatch_group_size_per_vp_stage", 4}});
  CHECK(peak(groups) > peak(kChunks));  // more activations wait for their backward pass
  agrees(groups);
  const std::string small = refusal(with(kChunks, {{"microbatch_group_size_per_vp_stage", 1}}));
  CHECK_MESSAGE(small.find("policy.megatron_cfg.microbatch_group_size_per_vp_stage is 1, wanted at least "
                           "pipeline_model_parallel_size, which is 2") != std::string::npos,
                small);
  runtime_test::runtime().stop();
}

void counts_layers(const Rank& rank) {
  start_runtime(rank);
  const json chunks = with(kTwo, {{"num_layers_per_virtual_pipeline_stage", 1}});
  CHECK(peak(chunks) == peak(kChunks));
  CHECK(peak(chunks) != peak(kTwo));
  agrees(chunks);
  const std::string odd = refusal(with(kTwo, {{"num_layers_per_virtual_pipeline_stage", 3}}));
  CHECK_MESSAGE(odd.find("policy.megatron_cfg.num_layers_per_virtual_pipeline_stage is 3, wanted a divisor of the "
                         "layers of a rank, 4 / 2") != std::string::npos,
                odd);
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios(
    {{"orders_ranks", orders_ranks}, {"groups_micro_batches", groups_micro_batches}, {"counts_layers", counts_layers}});

}  // namespace

TEST_CASE("rank_order says which ranks are stages of one pipeline") { rank_process::run("orders_ranks", 4); }

TEST_CASE("micro-batches go through virtual stages in groups of the size that is given") {
  rank_process::run("groups_micro_batches", 2);
}

TEST_CASE("virtual stages may be given by the layers of each") { rank_process::run("counts_layers", 2); }
