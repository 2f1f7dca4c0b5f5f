// A checkpoint goes on under any number of ranks; a foreign or damaged one is refused.
#include "tests/plugins/backend/fixed_order.hpp"
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

constexpr uint32_t kAll = HEXAD_CHECKPOINT_MODEL | HEXAD_CHECKPOINT_OPTIMIZER;

void train_steps(Instance& backend, const Rank& rank, int first, int last) {
  const FixedOrder order;
  for (int step = first; step < last; ++step) {
    auto batches = backend.batches(make_sequences(7, step), {2, false, false});
    backend.train(batches, 30, 1.0);
    CHECK_FALSE(backend.step(3e-3, 0.1, 0.5).skipped);
  }
}

// Two steps, `saved`, two more, `final`, in the folder of the argument.
void first_run(const Rank& rank) {
  start_runtime(rank);
  const std::filesystem::path dir = rank.argument;
  Instance backend(policy(dir / "model"));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  train_steps(backend, rank, 0, 2);
  backend.save(dir / "saved");
  train_steps(backend, rank, 2, 4);
  backend.save(dir / "final");
  runtime_test::runtime().stop();
}

void check_equal(const std::filesystem::path& got, const std::filesystem::path& want, double weights, double state) {
  CHECK(relative_error(read_weights(got / "weights"), read_weights(want / "weights")) <= weights);
  CHECK(relative_error(read_weights(got / "optimizer"), read_weights(want / "optimizer")) <= state);
}

// Goes on from `saved` of as many ranks as the argument begins with; what it saves then is `final`, bit for bit on as
// many. On others the moments of Adam may differ more than the weights: some of this small model's gradients nearly
// cancel.
void second_run(const Rank& rank) {
  start_runtime(rank);
  std::stringstream argument(rank.argument);
  int writers = 0;
  std::filesystem::path dir;
  argument >> writers >> dir;
  const std::filesystem::path mine = dir / ("goes_on_" + std::to_string(rank.world));
  Instance backend(policy(dir / "model"));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  REQUIRE_MESSAGE(backend.load(dir / "saved", kAll) == HEXAD_OK, backend.error());
  backend.save(mine);
  check_equal(mine, dir / "saved", 0, 0);
  train_steps(backend, rank, 2, 4);
  backend.save(mine);
  const bool same = rank.world == writers;
  check_equal(mine, dir / "final", same ? 0 : 1e-5, same ? 0 : 5e-5);
  runtime_test::runtime().stop();
}

void cannot_save(const Rank& rank) {
  start_runtime(rank);
  const std::filesystem::path dir = rank.argument;
  Instance backend(policy(dir / "model"));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  for (const uint32_t what : {HEXAD_CHECKPOINT_MODEL, HEXAD_CHECKPOINT_OPTIMIZER}) {
    CHECK(backend.try_save(dir / "model" / "config.json", what) != HEXAD_OK);
    CHECK(backend.error().find(rank.rank == 0 ? "Not a directory" : "rank 0 could not write") != std::string::npos);
  }
  train_steps(backend, rank, 0, 1);  // the run can go on
  runtime_test::runtime().stop();
}

const bool registered =
    add_scenarios({{"first_run", first_run}, {"second_run", second_run}, {"cannot_save", cannot_save}});

// A saved checkpoint of one rank beside its instance.
struct Saved {
  TemporaryDir dir;
  std::optional<Instance> backend;

  explicit Saved(const json& optimizer = nullptr) {
    one_rank();
    write_tiny_model(dir / "model", "llama");
    backend.emplace(config(optimizer));
    REQUIRE_MESSAGE(backend->code() == HEXAD_OK, backend->error());
    train_steps(*backend, one_rank(), 0, 1);
    backend->save(dir / "saved");
  }
  json config(const json& optimizer) const {
    json result = policy(dir / "model");
    if (!optimizer.is_null()) result["optimizer"] = optimizer;
    return result;
  }
  std::string error_of_load(Instance& into, uint32_t what) const {
    CHECK(into.load(dir / "saved", what) == HEXAD_INVALID_ARGUMENT);
    return into.error();
  }
};

}  // namespace

TEST_CASE("training goes on from a checkpoint of 4 ranks on 4, 3 and 1, and of one on one") {
  const auto goes_on = [](const char* family, int writers, const std::vector<int>& readers) {
    const TemporaryDir dir;
    write_tiny_model(dir / "model", family);
    if (!rank_process::run("first_run", writers, dir.path().string())) return;
    for (int world : readers)
      rank_process::run("second_run", world, std::to_string(writers) + " " + dir.path().string());
  };
  for (const char* family : {"llama", "qwen3", "deepseek_v3"}) goes_on(family, 4, {4, 3, 1});
  goes_on("deepseek_v3", 1, {1});
}

TEST_CASE("a save that rank 0 cannot make is an error on every rank") {
  const TemporaryDir dir;
  write_tiny_model(dir / "model", "llama");
  rank_process::run("cannot_save", 2, dir.path().string());
}

TEST_CASE("saved weights are a model directory with the source's configuration") {
  one_rank();
  const TemporaryDir dir;
  write_tiny_model(dir / "model", "llama");
  write_json(dir / "model" / "generation_config.json", {{"eos_token_id", 5}});
  Instance backend(policy(dir / "model", "bfloat16"));
  train_steps(backend, one_rank(), 0, 1);
  backend.save(dir.path(), HEXAD_CHECKPOINT_MODEL);
  json config = tiny_config("llama");
  config["torch_dtype"] = "float32";
  CHECK(json::parse(std::ifstream(dir / "weights" / "config.json")) == config);
  CHECK(json::parse(std::ifstream(dir / "weights" / "generation_config.json")) == json{{"eos_token_id", 5}});
  Instance again(policy(dir / "weights", "bfloat16"));
  CHECK(same(again.weights(HEXAD_WEIGHTS_CURRENT), backend.weights(HEXAD_WEIGHTS_CURRENT)));
}

TEST_CASE("a checkpoint loads into the reference weights alone") {
  Saved saved;
  Instance other(saved.config(nullptr));
  const Weights before = other.weights(HEXAD_WEIGHTS_CURRENT);
  REQUIRE(other.load(saved.dir / "saved", HEXAD_CHECKPOINT_MODEL, HEXAD_WEIGHTS_REFERENCE) == HEXAD_OK);
  CHECK(same(other.weights(HEXAD_WEIGHTS_REFERENCE), saved.backend->weights(HEXAD_WEIGHTS_CURRENT)));
  CHECK(same(other.weights(HEXAD_WEIGHTS_CURRENT), before));
}

TEST_CASE("a checkpoint of another model is refused, and the weights stay") {
  Saved saved;
  const TemporaryDir dir;
  write_tiny_model(dir.path(), "qwen3");
  Instance other(policy(dir.path()));
  const Weights before = other.weights(HEXAD_WEIGHTS_CURRENT);
  const std::string file = (saved.dir / "saved").string();
  CHECK(saved.error_of_load(other, HEXAD_CHECKPOINT_MODEL) ==
        file +
            "/weights: 6 of 35 weights are missing: model.layers.0.self_attn.q_norm.weight, "
            "model.layers.0.self_attn.k_norm.weight, model.layers.1.self_attn.q_norm.weight, "
            "model.layers.1.self_attn.k_norm.weight, model.layers.2.self_attn.q_norm.weight, "
            "model.layers.2.self_attn.k_norm.weight");
  CHECK(same(other.weights(HEXAD_WEIGHTS_CURRENT), before));
  CHECK(saved.error_of_load(other, HEXAD_CHECKPOINT_OPTIMIZER) ==
        file +
            "/optimizer: the optimizer state has no 'model.layers.0.self_attn.k_norm.weight.exp_avg': it was saved "
            "by another optimizer or for another model");
}

TEST_CASE("a checkpoint of another optimizer is refused") {
  Saved saved;
  const std::string file = (saved.dir / "saved" / "optimizer").string();
  Instance sgd(saved.config({{"name", "SGD"}}));
  CHECK(saved.error_of_load(sgd, HEXAD_CHECKPOINT_OPTIMIZER) ==
        file +
            ": the optimizer state holds 'lm_head.weight.exp_avg', which this optimizer does not keep: it was saved "
            "by another optimizer or for another model");
  Instance amsgrad(saved.config({{"name", "AdamW"}, {"kwargs", {{"amsgrad", true}}}}));
  CHECK(saved.error_of_load(amsgrad, HEXAD_CHECKPOINT_OPTIMIZER) ==
        file +
            ": the optimizer state has no 'lm_head.weight.max_exp_avg_sq': it was saved by another "
            "optimizer or for another model");
}

TEST_CASE("a missing or truncated checkpoint is refused") {
  Saved saved;
  const std::filesystem::path file = saved.dir / "saved" / "optimizer" / "model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 4);
  CHECK(saved.error_of_load(*saved.backend, HEXAD_CHECKPOINT_OPTIMIZER).find(file.string()) == 0);
  CHECK(saved.error_of_load(*saved.backend, HEXAD_CHECKPOINT_OPTIMIZER).find("truncated") != std::string::npos);
  std::filesystem::remove(file);
  CHECK(saved.error_of_load(*saved.backend, HEXAD_CHECKPOINT_OPTIMIZER) ==
        file.parent_path().string() + ": has neither model.safetensors nor model.safetensors.index.json");
}
