// policy.random_init_seed: weights that a directory does not have.
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

json random_policy(const std::filesystem::path& model, int64_t seed) {
  json config = policy(model);
  config["random_init_seed"] = seed;
  return config;
}

void write_config_alone(const std::filesystem::path& dir, const std::string& family, double range) {
  std::filesystem::create_directories(dir);
  json config = tiny_config(family);
  config["vocab_size"] = 999;
  config["hidden_size"] = 64;
  config["initializer_range"] = range;
  write_json(dir / "config.json", config);
}

// The folder of the argument holds `model`, without weights, and the `weights` that one rank made and saved.
void makes_the_same(const Rank& rank) {
  start_runtime(rank);
  const std::filesystem::path dir = rank.argument;
  Instance backend(random_policy(dir / "model", 42));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  CHECK(same(backend.weights(HEXAD_WEIGHTS_CURRENT), read_weights(dir / "weights")));
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"makes_the_same", makes_the_same}});

bool was_logged(const std::string& text) {
  for (const std::string& line : logged())
    if (line.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("random weights have transformers' distribution") {
  one_rank();
  const TemporaryDir dir;
  write_config_alone(dir / "model", "qwen2", 0.05);  // has biases
  Instance backend(random_policy(dir / "model", 7));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  CHECK(was_logged("no weights, so they start random (policy.random_init_seed 7)"));
  for (const auto& [name, weight] : backend.weights(HEXAD_WEIGHTS_CURRENT)) {
    CAPTURE(name);
    if (name.ends_with("norm.weight")) {
      CHECK(weight.equal(at::ones_like(weight)));
    } else if (name.ends_with(".bias")) {
      CHECK(weight.equal(at::zeros_like(weight)));
    } else {
      const double count = static_cast<double>(weight.numel());
      CHECK(std::abs(weight.mean().item<double>()) < 5 * 0.05 / std::sqrt(count));
      CHECK(std::abs(weight.std().item<double>() / 0.05 - 1) < 5 / std::sqrt(2 * count));
    }
  }
}

TEST_CASE("random weights depend on the seed and the weight's name, and on nothing else") {
  one_rank();
  const TemporaryDir dir;
  write_config_alone(dir / "model", "llama", 0.02);
  Instance backend(random_policy(dir / "model", 42)), other(random_policy(dir / "model", 43));
  for (const Instance* made : {&backend, &other}) REQUIRE_MESSAGE(made->code() == HEXAD_OK, made->error());
  const Weights weights = backend.weights(HEXAD_WEIGHTS_CURRENT), others = other.weights(HEXAD_WEIGHTS_CURRENT);
  const std::string gate = "model.layers.0.mlp.gate_proj.weight", up = "model.layers.0.mlp.up_proj.weight";
  CHECK_FALSE(weights.at(gate).equal(weights.at(up)));
  CHECK_FALSE(weights.at(gate).equal(weights.at("model.layers.1.mlp.gate_proj.weight")));
  CHECK_FALSE(weights.at(gate).equal(others.at(gate)));
  backend.save(dir.path(), HEXAD_CHECKPOINT_MODEL);
  for (int world : {1, 2, 3, 4}) rank_process::run("makes_the_same", world, dir.path().string());
  Instance again(policy(dir / "weights"));  // what was saved is a model directory
  REQUIRE_MESSAGE(again.code() == HEXAD_OK, again.error());
  CHECK(same(again.weights(HEXAD_WEIGHTS_CURRENT), weights));
}

TEST_CASE("weights that are there are used, whatever the seed") {
  one_rank();
  const TemporaryDir dir;
  const Weights weights = write_tiny_model(dir.path(), "llama");
  logged().clear();
  Instance backend(random_policy(dir.path(), 42));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  CHECK(same(backend.weights(HEXAD_WEIGHTS_CURRENT), weights));
  CHECK(logged() ==
        std::vector<std::string>{dir.path().string() + ": has weights, so policy.random_init_seed is not used"});
}

TEST_CASE("without weights and without a seed the error names both ways out") {
  one_rank();
  const TemporaryDir dir;
  write_config_alone(dir.path(), "llama", 0.02);
  Instance backend(policy(dir.path()));
  CHECK(backend.code() == HEXAD_INVALID_ARGUMENT);
  CHECK(backend.error() == "policy.model_name '" + dir.path().string() +
                               "': found neither model.safetensors nor model.safetensors.index.json; to start from "
                               "random weights, made from its config.json, set policy.random_init_seed");
}
