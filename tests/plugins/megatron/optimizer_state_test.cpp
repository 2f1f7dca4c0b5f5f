// Where masters and the optimizer's state lie, and in which types: what changes nothing changes nothing, what rounds
// rounds by so much, and a checkpoint goes on with the same step.
#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/fixed_order.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/megatron_policy.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

const Packing kPacking{2, false, false};

struct Run {
  std::string precision = "float32";
  json optimizer = json::object();
  json data_parallel = json::object();
};

std::unique_ptr<Instance> make(const std::filesystem::path& model, const Run& run) {
  json optimizer = {{"lr", 3e-3}, {"weight_decay", 0.1}};
  optimizer.update(run.optimizer);
  json data_parallel = {{"bucket_size", 500}, {"grad_reduce_in_fp32", true}};
  data_parallel.update(run.data_parallel);
  const json sizes = {{"optimizer", optimizer}, {"distributed_data_parallel_config", data_parallel}};
  auto backend = std::make_unique<Instance>(megatron_policy(model, sizes, run.precision));
  REQUIRE_MESSAGE(backend->code() == HEXAD_OK, backend->error());
  return backend;
}

void train_step(Instance& backend, int step) {
  const FixedOrder order;
  const std::vector<Sequence> data = make_sequences(8, step);
  auto batches = backend.batches(data, kPacking);
  backend.train(batches, static_cast<double>(total_tokens(data)), kTemperature);
  backend.step(kLr, kDecay, kMaxNorm);
}

// The masters after three steps, as a checkpoint holds them.
Weights masters(const std::filesystem::path& folder, Instance& backend) {
  std::filesystem::create_directories(folder);
  backend.save(folder);
  return read_weights(folder / "weights");
}
Weights three_steps_of(const std::filesystem::path& dir, const std::filesystem::path& folder, const Run& run) {
  const auto backend = make(dir, run);
  for (int step = 1; step <= 3; ++step) train_step(*backend, step);
  return masters(folder, *backend);
}

json aware(json more) {
  more["use_precision_aware_optimizer"] = true;
  return more;
}

// argument: a folder that all ranks see.
void states(const Rank& rank) {
  start_runtime(rank);
  const std::filesystem::path folder = rank.argument, dir = folder / ("model" + std::to_string(rank.rank));
  write_model(dir, megatron_model("qwen3"));
  int runs = 0;
  const auto after = [&](const Run& run) {
    return three_steps_of(dir, folder / ("run" + std::to_string(runs++)), run);
  };
  const json kWhole = {{"use_precision_aware_optimizer", false}};  // fp32 masters beside bf16 parameters
  const Weights plain = after({"float32", kWhole}), narrow = after({"bfloat16", kWhole}), wide = read_weights(dir);
  const json kShards = {{"data_parallel_sharding_strategy", "optim_grads_params"}};
  const Weights shards = after({"bfloat16", kWhole, kShards});
  const double moved = relative_error(plain, wide);
  const auto far = [&](const Run& run, const Weights& from) { return relative_error(after(run), from) / moved; };
  // Of a run on GPUs the host's part rounds otherwise, in bf16 to a neighbour 2^-8 away where it does.
  const auto equals = [](const Weights& a, const Weights& b, double apart = 1e-6) {
    return relative_error(a, b) <= (test_device::is_gpu() ? apart : 0);
  };
  // Bit for bit: a part on the host, gathered late or not, and the bits that bf16 lacks in place of whole masters.
  for (double fraction : {0.3, 1.0}) {
    const json offload = aware({{"optimizer_cpu_offload", true}, {"optimizer_offload_fraction", fraction}});
    CHECK(equals(after({"float32", offload}), plain));
    CHECK(equals(after({"bfloat16", offload}), narrow, 1e-3));
    CHECK(equals(after({"bfloat16", offload, kShards}), shards, 1e-3));
  }
  // What lies on the host is fp32 there, whatever main_params_dtype says of the rest.
  const auto with_on_host = [&](double fraction) {
    return after({"bfloat16", aware({{"main_params_dtype", "float16"},
                                     {"optimizer_cpu_offload", true},
                                     {"optimizer_offload_fraction", fraction}})});
  };
  CHECK(equals(with_on_host(1), narrow, 1e-3));
  const Weights some = with_on_host(0.5);
  CHECK_FALSE(same(some, narrow));
  CHECK_FALSE(same(some, with_on_host(0)));
  // A master half-way between two parameters has the one away from zero here, the even one there: few elements, and by
  // a step of bf16 each.
  CHECK(far({"bfloat16", aware(json::object())}, narrow) < 0.02);
  CHECK(same(after({"float32", json::object(), {{"overlap_param_gather", false}}}), plain));
  // Rounded: not the same, and near by what the type's digits say.
  const auto rounds = [&](const Run& run, const Weights& from, double most) {
    const double error = far(run, from);
    INFO(run.optimizer.dump() << run.data_parallel.dump() << ": " << error);
    CHECK(error > 0);
    CHECK(error < most);
  };
  rounds({"float32", aware({{"exp_avg_dtype", "bfloat16"}})}, plain, 0.02);
  rounds({"float32", aware({{"exp_avg_sq_dtype", "bfloat16"}})}, plain, 0.02);
  rounds({"float32", aware({{"exp_avg_dtype", "float16"}, {"exp_avg_sq_dtype", "float16"}})}, plain, 0.1);
  rounds({"float32", aware({{"exp_avg_dtype", "fp8"}})}, plain, 0.3);
  rounds({"float32", aware({{"main_grads_dtype", "bfloat16"}})}, plain, 0.1);
  rounds({"bfloat16", aware({{"main_params_dtype", "float16"}})}, narrow, 0.3);
  rounds({"bfloat16", json::object(), {{"grad_reduce_in_fp32", false}}}, narrow, 0.3);
  runtime_test::runtime().stop();
}

// What is saved in narrow types goes on as if it had not stopped; so does what was moved to the host and back.
void goes_on(const Rank& rank) {
  start_runtime(rank);
  const std::filesystem::path folder = rank.argument, dir = folder / ("model" + std::to_string(rank.rank));
  write_model(dir, megatron_model("llama"));
  const json types = {{"exp_avg_dtype", "bfloat16"}, {"exp_avg_sq_dtype", "float16"}};
  const json offload = {{"optimizer_cpu_offload", true}, {"optimizer_offload_fraction", 0.4}};
  int runs = 0;
  for (const Run& run : {Run{"float32", aware(types)}, Run{"bfloat16", aware(types)}, Run{"bfloat16", aware(offload)},
                         Run{"bfloat16", aware({{"main_params_dtype", "float16"}})}}) {
    INFO(run.precision << run.optimizer.dump());
    const std::filesystem::path saved = folder / ("saved" + std::to_string(runs++));
    const auto first = make(dir, run), second = make(dir, run);
    train_step(*first, 1);
    const Weights before = masters(saved, *first);
    second->check(second->load(saved, HEXAD_CHECKPOINT_MODEL | HEXAD_CHECKPOINT_OPTIMIZER));
    CHECK(relative_error(masters(saved.string() + "again", *second), before) <= 1e-7);
    first->offload(HEXAD_OFFLOAD_PARAMS | HEXAD_OFFLOAD_OPTIMIZER);
    first->onload(HEXAD_OFFLOAD_PARAMS | HEXAD_OFFLOAD_OPTIMIZER);
    train_step(*first, 2);
    train_step(*second, 2);
    CHECK(relative_error(masters(saved.string() + "a", *first), masters(saved.string() + "b", *second)) <= 1e-6);
  }
  runtime_test::runtime().stop();
}

void refuses(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  write_model(dir.path(), megatron_model("llama"));
  const auto error_of = [&](const json& sizes) {
    Instance backend(megatron_policy(dir.path(), sizes));
    CHECK(backend.code() != HEXAD_OK);
    return backend.error();
  };
  const auto ddp = [](const char* key, json value) {
    return json{{"distributed_data_parallel_config", {{key, value}}}};
  };
  const auto optimizer = [](json keys) { return json{{"optimizer", std::move(keys)}}; };
  CHECK(error_of(ddp("data_parallel_sharding_strategy", "all")) ==
        "policy.megatron_cfg.distributed_data_parallel_config.data_parallel_sharding_strategy is 'all', wanted "
        "no_shard, optim, optim_grads or optim_grads_params");
  CHECK(error_of(optimizer({{"exp_avg_dtype", "int8"}})) ==
        "policy.megatron_cfg.optimizer.exp_avg_dtype is 'int8', wanted float32, bfloat16, float16, fp8");
  CHECK(error_of(optimizer({{"optimizer_cpu_offload", true}, {"optimizer_offload_fraction", 1.5}})) ==
        "policy.megatron_cfg.optimizer.optimizer_offload_fraction is 1.5, wanted 0 to 1");
  for (const char* name : {"bf16", "fp16"}) {
    CHECK(error_of(optimizer({{name, true}})) == std::string("policy.megatron_cfg.optimizer.") + name +
                                                     " is true, but policy.precision is float32: set it to false");
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"states", states}, {"goes_on", goes_on}, {"refuses_states", refuses}});

}  // namespace

TEST_CASE("masters and states in narrow types and on the host") {
  for (int world : {1, 2}) {
    const TemporaryDir dir;
    rank_process::run("states", world, dir.path().string());
  }
}
TEST_CASE("training goes on from narrow states, and after a move to the host and back") {
  const TemporaryDir dir;
  rank_process::run("goes_on", 2, dir.path().string());
}
TEST_CASE("forms and types that do not exist are refused") { rank_process::run("refuses_states", 1); }
