// What data-parallel ranks share, and when they exchange it, changes no result: every form of
// distributed_data_parallel_config agrees with plain autograd, and nothing is used before it has arrived.
#include "tests/plugins/backend/agreement.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"
#include "tests/plugins/megatron/lazy_group.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

const char* const kForms[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};

json data_parallel(const std::string& form, bool overlap, json sizes = json::object(), int bucket_size = 600) {
  sizes["distributed_data_parallel_config"] = {{"data_parallel_sharding_strategy", form},
                                               {"overlap_grad_reduce", overlap},
                                               {"overlap_param_gather", overlap},
                                               {"bucket_size", bucket_size}};
  return sizes;
}

void check_layout(const std::string& family, const Packing& packing, const json& sizes) {
  const json model = has_experts(family) ? expert_model(family) : megatron_model(family);
  check_agrees({family, model, packing, sizes},
               [](const auto& dir, const json& keys) { return megatron_policy(dir, keys); });
}

// One sequence a micro-batch: 11 do not divide, so that some ranks' last micro-batch is empty.
const Packing kOne{1, false, false}, kFour{4, false, false};

void late(const Rank& rank) {
  start_runtime(rank);
  use_lazy_groups();
  for (const char* form : kForms)
    for (bool overlap : {false, true}) check_layout("qwen3", overlap ? kOne : kFour, data_parallel(form, overlap));
  runtime_test::runtime().stop();
}

void shares(const Rank& rank) {
  start_runtime(rank);
  const json pipeline = {{"pipeline_model_parallel_size", 2}},
             chunks = {{"pipeline_model_parallel_size", 2}, {"virtual_pipeline_model_parallel_size", 2}},
             tensor = {{"tensor_model_parallel_size", 2}, {"sequence_parallel", true}},
             experts = {{"expert_model_parallel_size", 2}}, recompute = {{"activation_checkpointing", true}};
  check_layout("llama", kOne, data_parallel("no_shard", true, tensor, 300));
  for (const char* form : {"optim", "optim_grads", "optim_grads_params"}) {
    check_layout("qwen3", kOne, data_parallel(form, true, pipeline));  // tied over the stages
    check_layout("qwen2", kOne, data_parallel(form, true, tensor, 300));
  }
  check_layout("qwen3", kOne, data_parallel("optim_grads_params", true, chunks));
  check_layout("llama", kFour, data_parallel("optim_grads_params", false, recompute));
  check_layout("qwen3_moe", kFour, data_parallel("optim_grads", true, experts));
  for (const char* form : {"optim", "optim_grads_params"}) {  // two instances of the distributed optimizer
    json twice = data_parallel(form, true);
    twice["distributed_data_parallel_config"]["num_distributed_optimizer_instances"] = 2;
    check_layout("qwen3", kOne, twice);
  }
  check_layout("mixtral", kOne, data_parallel("optim_grads_params", true, experts));
  runtime_test::runtime().stop();
}

std::unique_ptr<Instance> make(const std::filesystem::path& model, const json& sizes) {
  auto backend = std::make_unique<Instance>(megatron_policy(model, sizes));
  REQUIRE_MESSAGE(backend->code() == HEXAD_OK, backend->error());
  return backend;
}

// Three calls of train before one step; a discarded one in between; kept weights and exports of every form.
void accumulates(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  write_model(dir.path(), megatron_model("qwen3"));
  Weights want_grads;
  for (const char* form : kForms) {
    INFO(std::string(form));
    const auto backend = make(dir.path(), data_parallel(form, true));
    const std::vector<Sequence> data = make_sequences(9, 1), more = make_sequences(7, 2);
    auto first = backend->batches(data, kOne), second = backend->batches(more, kFour);
    backend->train(first, 100, kTemperature);
    backend->step(kLr, kDecay, kMaxNorm, HEXAD_STEP_DISCARD);
    for (int i = 0; i < 2; ++i) {
      backend->train(first, 100, kTemperature);
      backend->train(second, 100, kTemperature);
    }
    const Weights grads = backend->weights(HEXAD_WEIGHTS_GRADIENTS);
    backend->keep(HEXAD_WEIGHTS_REFERENCE);
    const Weights before = backend->weights(HEXAD_WEIGHTS_CURRENT);
    backend->step(kLr, kDecay, kMaxNorm);
    const Weights after = backend->weights(HEXAD_WEIGHTS_CURRENT);  // waits for what the step sends
    if (want_grads.empty()) want_grads = grads;
    CHECK(relative_error(grads, want_grads) <= kContract);
    Reference reference(dir.path(), read_weights(dir.path()));
    reference.decays_matrices_only = true;
    reference.grads = grads;
    reference.step(kLr, kDecay, kMaxNorm);
    CHECK(relative_error(after, reference.weights) <= weight_bound(false));
    CHECK(same(backend->weights(HEXAD_WEIGHTS_REFERENCE), before));
    const auto kept = backend->logprobs(first, HEXAD_WEIGHTS_REFERENCE, kTemperature),
               now = backend->logprobs(first, HEXAD_WEIGHTS_CURRENT, kTemperature);
    size_t moved = 0;
    for (size_t b = 0; b < kept.size(); ++b) moved += !kept[b].equal(now[b]);
    CHECK(moved > 0);
  }
  runtime_test::runtime().stop();
}

size_t first_of(const std::string& what, size_t from = 0) {
  for (size_t i = from; i < events().size(); ++i)
    if (events()[i].what == what) return i;
  return events().size();
}
size_t last_of(const std::string& what) {
  size_t found = events().size();
  for (size_t i = 0; i < events().size(); ++i)
    if (events()[i].what == what) found = i;
  return found;
}

// Tensor-parallel exchanges stand for computation: they happen in every block, forward and backward.
void overlaps(const Rank& rank) {
  start_runtime(rank);
  use_lazy_groups();
  const TemporaryDir dir;
  write_model(dir.path(), megatron_model("llama"));
  for (bool overlap : {false, true}) {
    const auto backend = make(dir.path(), data_parallel("optim", overlap, {{"tensor_model_parallel_size", 2}}));
    const std::vector<Sequence> data = make_sequences(8, 1);
    auto batches = backend->batches(data, kOne);
    events().clear();
    backend->train(batches, 100, kTemperature);
    REQUIRE(first_of("reduce") < events().size());
    // The first bucket is sent before the last block's backward, and none is waited for before all are sent.
    CHECK((first_of("reduce") < last_of("exchange")) == overlap);
    CHECK(first_of("reduce done") > last_of("reduce"));
    CHECK(first_of("reduce done") > last_of("exchange"));
    backend->weights(HEXAD_WEIGHTS_GRADIENTS);
    events().clear();
    backend->step(kLr, kDecay, kMaxNorm);
    const size_t gathered = first_of("gather");
    REQUIRE(gathered < events().size());
    CHECK((first_of("gather done") == events().size()) == overlap);
    const auto again = backend->batches(data, kFour);
    auto& now = const_cast<std::deque<Batch>&>(again);
    backend->logprobs(now, HEXAD_WEIGHTS_CURRENT, kTemperature);
    if (!overlap) continue;
    // The first block runs while later buckets are still on their way; they are waited for in the order they were sent.
    CHECK(first_of("exchange", first_of("gather done")) < last_of("gather done"));
    std::vector<int64_t> sent, arrived;
    for (const Event& event : events()) {
      if (event.what == "gather") sent.push_back(event.elements);
      if (event.what == "gather done") arrived.push_back(event.elements);
    }
    CHECK(sent == arrived);
    CHECK(sent.size() > 2);
  }
  runtime_test::runtime().stop();
}

// Bytes that a rank keeps between steps, of fp32 weights.
void keeps_shards(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  write_model(dir.path(), megatron_model("llama"));
  std::vector<int64_t> parameters, gradients;
  for (const char* form : kForms) {
    const auto backend = make(dir.path(), data_parallel(form, true));
    auto batches = backend->batches(make_sequences(8, 1), kOne);
    backend->train(batches, 100, kTemperature);
    const hexad_memory_stats stats = backend->memory();
    parameters.push_back(stats.parameter_bytes);
    gradients.push_back(stats.gradient_bytes);
  }
  const auto half = [](int64_t part, int64_t whole) {
    CHECK(part * 2 >= whole);
    CHECK(static_cast<double>(part) * 2 <= static_cast<double>(whole) * 1.25);  // units are padded to 128 elements
  };
  CHECK(gradients[1] >= gradients[0]);
  half(gradients[2], gradients[1]);
  CHECK(gradients[3] == gradients[2]);
  CHECK(parameters[2] >= parameters[0]);
  half(parameters[3], parameters[2]);
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"late", late},
                                       {"shares", shares},
                                       {"accumulates", accumulates},
                                       {"overlaps", overlaps},
                                       {"keeps_shards", keeps_shards}});

}  // namespace

TEST_CASE("every form of sharding agrees with plain autograd, and waits for what it uses") {
  rank_process::run("late", 2);
}
TEST_CASE("sharded gradients and parameters with tensor, pipeline and expert parallelism") {
  rank_process::run("shares", 4);
}
TEST_CASE("gradients of several calls add up to one step in every form of sharding") {
  rank_process::run("accumulates", 2);
}
TEST_CASE("buckets are reduced during the backward pass and gathered during the forward pass") {
  rank_process::run("overlaps", 4);
}
TEST_CASE("optim_grads keeps gradients, optim_grads_params parameters too, as shards") {
  rank_process::run("keeps_shards", 2);
}
