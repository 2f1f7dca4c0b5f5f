// What training does to routers does not depend on the layout: balancing losses, expert biases, capacity, frozen
// routers, beside plain autograd on one rank.
#include "tests/plugins/backend/broken_group.hpp"
#include "tests/plugins/backend/expert_reference.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

struct Case {
  std::string family;
  Packing packing;
  json sizes;  // of the layout
  Balancing balancing;
};

json merged(json a, const json& b) {
  a.update(b);
  return a;
}

json layout(int tp, int pp, int cp, int ep, int etp, const json& more = json::object()) {
  return merged({{"tensor_model_parallel_size", tp},
                 {"pipeline_model_parallel_size", pp},
                 {"context_parallel_size", cp},
                 {"expert_model_parallel_size", ep},
                 {"expert_tensor_parallel_size", etp},
                 {"sequence_parallel", tp > 1}},
                more);
}

// The keys of megatron_cfg that ask for it.
json keys_of(const Balancing& b) {
  json types = json::array(), coefficients = json::array();
  const auto add = [&](const char* type, double coefficient) {
    if (coefficient > 0) types.push_back(type), coefficients.push_back(coefficient);
  };
  add("aux_loss", b.aux), add("seq_aux_loss", b.sequence), add("global_aux_loss", b.global);
  json keys = {{"moe_z_loss_coeff", b.z}, {"calculate_per_token_loss", b.per_token}};
  if (types.size() == 1) types = types[0], coefficients = coefficients[0];
  if (!types.empty()) keys.update({{"moe_router_load_balancing_type", types}, {"moe_aux_loss_coeff", coefficients}});
  if (b.capacity > 0) keys["moe_expert_capacity_factor"] = b.capacity;
  if (b.capacity > 0) keys["moe_token_drop_policy"] = b.by_position ? "position" : "probs";
  if (b.bias_rate > 0)
    keys.update({{"moe_router_enable_expert_bias", true}, {"moe_router_bias_update_rate", b.bias_rate}});
  return keys;
}

std::vector<Case> cases(int world) {
  const Packing four{4, false, false}, one{1, false, false}, padded{3, true, false};
  const json recompute = {{"activation_checkpointing", true}}, gather = {{"moe_token_dispatcher_type", "allgather"}},
             chunks = {{"virtual_pipeline_model_parallel_size", 2}},
             shards = {
                 {"distributed_data_parallel_config", {{"data_parallel_sharding_strategy", "optim_grads_params"}}}};
  // Large coefficients: their share of the gradient must be far above the tolerance.
  const Balancing aux{.aux = 0.5}, sequence{.sequence = 0.5}, global{.global = 0.5}, z{.z = 0.1};
  Balancing all{.aux = 0.3, .sequence = 0.2, .global = 0.4, .z = 0.05}, means = all;
  means.per_token = false;
  const Balancing bias{.bias_rate = 0.03}, both{.aux = 0.2, .bias_rate = 0.03};
  const Balancing tight{.capacity = 0.6}, first{.aux = 0.2, .capacity = 0.8, .by_position = true};
  switch (world) {
    case 1:
      return {{"qwen3_moe", four, layout(1, 1, 1, 1, 1), all},
              {"deepseek_v3", one, layout(1, 1, 1, 1, 1, recompute), both},
              {"qwen2_moe", padded, layout(1, 1, 1, 1, 1), tight}};
    case 2:
      return {{"qwen3_moe", four, layout(2, 1, 1, 1, 1), all},
              {"qwen3_moe", padded, layout(1, 1, 2, 1, 1), all},
              {"qwen3_moe", one, layout(1, 1, 1, 1, 1), global},
              {"mixtral", four, layout(1, 1, 1, 2, 1, gather), means},
              {"qwen3_moe", one, layout(1, 2, 1, 1, 1, recompute), sequence},
              {"deepseek_v3", four, layout(1, 1, 1, 1, 1), bias},
              {"deepseek_v3", one, layout(1, 2, 1, 1, 1), both},
              {"deepseek_v3", four, layout(1, 1, 2, 1, 1), both},
              {"deepseek_v3", four, layout(2, 1, 1, 2, 1), both},
              {"deepseek_v3", one, layout(1, 1, 1, 2, 1, recompute), bias},
              {"deepseek_v3", one, layout(1, 1, 1, 1, 1, shards), both},
              {"qwen3_moe", four, layout(1, 1, 1, 2, 1), tight},
              {"qwen2_moe", one, layout(1, 1, 1, 2, 1, gather), first},
              {"qwen3_moe", four, layout(1, 1, 1, 1, 2), tight},
              {"mixtral", padded, layout(1, 2, 1, 1, 1), first}};
    case 4:
      return {{"qwen3_moe", four, layout(2, 1, 2, 2, 1), all},
              {"qwen2_moe", four, layout(2, 2, 1, 2, 1), aux},
              {"qwen3_moe", one, layout(1, 2, 1, 2, 1), z},
              {"qwen3_moe", one, layout(1, 2, 1, 1, 1, chunks), global},
              {"deepseek_v3", four, layout(1, 2, 2, 2, 1), both},
              {"deepseek_v3", one, layout(1, 1, 1, 2, 1), both},
              {"qwen3_moe", four, layout(1, 1, 1, 2, 2, gather), first}};
    default:
      return {{"deepseek_v3", one, layout(1, 2, 2, 4, 1), both}, {"qwen3_moe", four, layout(2, 1, 2, 4, 2), all}};
  }
}

void check(const Case& c, const std::string& frozen, const json& more) {
  const json sizes = merged(merged(c.sizes, keys_of(c.balancing)), more);
  const ExpertErrors errors = expert_steps(
      expert_model(c.family), c.packing, c.balancing, [&](const auto& dir) { return megatron_policy(dir, sizes); },
      frozen);
  INFO(c.family << ", " << c.packing.sequences << " in a micro-batch, " << sizes.dump() << ": loss " << errors.loss
                << " balancing " << errors.balances << " grad " << errors.grad << " weight " << errors.weight);
  CHECK(errors.loss <= errors.bound.loss);
  CHECK(errors.balances <= errors.bound.loss);
  CHECK(errors.grad <= errors.bound.grad);
  CHECK(errors.norm <= errors.bound.norm);
  CHECK(errors.weight <= errors.bound.weight);
}

void balances(const Rank& rank) {
  start_runtime(rank);
  for (const Case& c : cases(rank.world)) check(c, "", json::object());
  runtime_test::runtime().stop();
}

// A frozen router still passes the gradient of its losses on to the tokens.
void freezes(const Rank& rank) {
  start_runtime(rank);
  const json keys = {{"freeze_moe_router", true}, {"moe_router_dtype", "fp64"}};
  check({"qwen3_moe", {4, false, false}, layout(2, 1, 1, 2, 1), {.aux = 0.5}}, ".gate.weight", keys);
  check({"deepseek_v3", {1, false, false}, layout(1, 2, 1, 1, 1), {.bias_rate = 0.03}}, ".gate.weight", keys);
  const json shards = {
      {"distributed_data_parallel_config", {{"data_parallel_sharding_strategy", "optim_grads_params"}}}};
  check({"qwen3_moe", {1, false, false}, layout(1, 1, 1, 1, 1), {.aux = 0.5}}, ".gate.weight", merged(keys, shards));
  runtime_test::runtime().stop();
}

// Frozen weights count among the parameters, once for all versions, and are there again after a move to the host.
void keeps_frozen(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir folder;
  write_model(folder.path(), expert_model("qwen3_moe"));
  const auto make = [&](bool freeze) {
    const json keys = {{"freeze_moe_router", freeze},
                       {"optimizer", {{"use_precision_aware_optimizer", false}}},
                       {"distributed_data_parallel_config", {{"data_parallel_sharding_strategy", "no_shard"}}}};
    auto backend = std::make_unique<Instance>(megatron_policy(folder.path(), keys, "bfloat16"));
    REQUIRE_MESSAGE(backend->code() == HEXAD_OK, backend->error());
    return backend;
  };
  const auto moves = make(true), stays = make(true), trains = make(false);
  int64_t routers = 0;
  for (const auto& [name, weight] : read_weights(folder.path()))
    if (name.ends_with(".gate.weight")) routers += (weight.numel() + 63) / 64 * 64;
  CHECK(routers > 0);
  // Four bytes of fp32; a trained one has two of bfloat16 and four of its master, in buffers whose parameters begin on
  // 64 elements.
  CHECK(trains->memory().parameter_bytes - stays->memory().parameter_bytes == 2 * routers);
  const auto kept_by = [](Instance& backend) {
    const int64_t before = backend.memory().parameter_bytes;
    backend.keep(HEXAD_WEIGHTS_REFERENCE);
    return backend.memory().parameter_bytes - before;
  };
  CHECK(kept_by(*trains) - kept_by(*stays) == 2 * routers);
  moves->keep(HEXAD_WEIGHTS_REFERENCE);
  for (int step = 0; step < 2; ++step) {
    for (Instance* instance : {moves.get(), stays.get()}) {
      auto batches = instance->batches(make_sequences(8, step), {4, false, false});
      instance->train(batches, 50, 1);
      instance->step(kLr, kDecay, kMaxNorm);
    }
    moves->offload(HEXAD_OFFLOAD_PARAMS | HEXAD_OFFLOAD_OPTIMIZER);
    CHECK(moves->memory().parameter_bytes == stays->memory().parameter_bytes);
    moves->onload(HEXAD_OFFLOAD_PARAMS | HEXAD_OFFLOAD_OPTIMIZER);
  }
  for (const int32_t which : {HEXAD_WEIGHTS_CURRENT, HEXAD_WEIGHTS_REFERENCE})
    CHECK(same(moves->weights(which), stays->weights(which)));
  runtime_test::runtime().stop();
}

// Tokens that are not counted over all ranks are noticed, in losses and in biases.
void miscounts(const Rank& rank) {
  start_runtime(rank);
  std::vector<c10::intrusive_ptr<BrokenGroup>> kept;
  wrap_group() = [&](void* real) {
    kept.push_back(
        c10::make_intrusive<BrokenGroup>(static_cast<c10d::ProcessGroup*>(real), "no sum of tokens per expert"));
    return static_cast<void*>(static_cast<c10d::ProcessGroup*>(kept.back().get()));
  };
  const auto errors = [](const Case& c) {
    return expert_steps(expert_model(c.family), c.packing, c.balancing,
                        [&](const auto& dir) { return megatron_policy(dir, merged(c.sizes, keys_of(c.balancing))); });
  };
  const Packing four{4, false, false};
  CHECK(errors({"qwen3_moe", four, layout(2, 1, 1, 1, 1), {.aux = 0.5}}).grad > 1e-3);
  CHECK(errors({"qwen3_moe", four, layout(1, 1, 2, 1, 1), {.sequence = 0.5}}).grad > 1e-3);
  CHECK(errors({"qwen3_moe", four, layout(1, 1, 1, 1, 1), {.global = 0.5}}).grad > 1e-3);
  // Halves of a sequence want other experts than the whole; halves of the sequences do not, in a model this small.
  CHECK(errors({"deepseek_v3", four, layout(1, 1, 2, 1, 1), {.bias_rate = 0.03}}).weight > 1e-3);
  CHECK(errors({"deepseek_v3", four, layout(1, 1, 2, 1, 1), {}}).weight <= weight_bound(false));
  runtime_test::runtime().stop();
}

Weights biases_of(Instance& backend) {
  Weights biases;
  for (const auto& [name, weight] : backend.weights(HEXAD_WEIGHTS_CURRENT))
    if (name.ends_with("e_score_correction_bias")) biases[name] = weight;
  return biases;
}

// A step that is discarded or skipped moves no bias, and its tokens do not count later; a kept copy keeps its own.
void undone_steps(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir folder;
  write_model(folder.path(), expert_model("deepseek_v3"));
  const json sizes = merged(layout(1, 1, 1, 2, 1), keys_of({.bias_rate = 0.03}));
  Instance backend(megatron_policy(folder.path(), sizes)), other(megatron_policy(folder.path(), sizes));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const auto train = [&](Instance& instance, int data, double factor) {
    auto batches = instance.batches(make_sequences(11, data), {4, false, false});
    instance.train(batches, 50, 1, factor);
  };
  const Weights before = biases_of(backend);
  CHECK(before.size() == 3);
  train(backend, 0, 1);
  backend.step(kLr, kDecay, kMaxNorm, HEXAD_STEP_DISCARD);
  CHECK(same(biases_of(backend), before));
  train(backend, 0, NAN);
  CHECK(backend.step(kLr, kDecay, kMaxNorm).skipped);
  CHECK(same(biases_of(backend), before));
  backend.keep(HEXAD_WEIGHTS_REFERENCE);
  for (Instance* instance : {&backend, &other}) {
    train(*instance, 1, 1);
    instance->step(kLr, kDecay, kMaxNorm);
  }
  CHECK(!same(biases_of(backend), before));
  CHECK(same(biases_of(backend), biases_of(other)));
  for (const auto& [name, bias] : before) CHECK(backend.weights(HEXAD_WEIGHTS_REFERENCE).at(name).equal(bias));
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"balances", balances},
                                       {"freezes", freezes},
                                       {"keeps_frozen", keeps_frozen},
                                       {"undone_steps", undone_steps},
                                       {"miscounts", miscounts}});

}  // namespace

TEST_CASE("routers of 1, 2 and 4 ranks agree with plain autograd") {
  for (int world : {1, 2, 4}) rank_process::run("balances", world);
}

TEST_SUITE("layouts") {
  TEST_CASE("routers of 8 ranks agree with plain autograd") { rank_process::run("balances", 8); }
}

TEST_CASE("a frozen router is not trained, whatever the layout") { rank_process::run("freezes", 2); }

TEST_CASE("frozen routers count in the memory report and survive offloading") { rank_process::run("keeps_frozen", 1); }

TEST_CASE("a step that is discarded or skipped leaves the expert biases") { rank_process::run("undone_steps", 2); }

TEST_CASE("tokens that are not counted over ranks are noticed") { rank_process::run("miscounts", 2); }
