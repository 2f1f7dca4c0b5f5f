// Every optimizer through the configuration, on shards: the same weights as whole tensors get.
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/reference.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

constexpr double kLr = 2e-2, kMaxNorm = 0.3;

void three_steps(const std::string& name, const json& kwargs, const Rank& rank) {
  INFO(name << " " << kwargs.dump());
  const TemporaryDir dir;
  Reference reference(dir.path(), write_tiny_model(dir.path(), "qwen3"));
  hexad::modeling::Optimizer optimizer(hexad::modeling::parse_optimizer(name, kwargs));
  json config = policy(dir.path());
  config["optimizer"] = {{"name", name}, {"kwargs", kwargs}};
  Instance backend(config);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  for (int step = 0; step < 3; ++step) {
    const std::vector<Sequence> data = make_sequences(6, step);
    auto batches = backend.batches(data, {2, false, false});
    reference.train(data, 20, 1.0);
    backend.train(batches, 20, 1.0);
    reference.step(optimizer, kLr, optimizer.options().weight_decay, kMaxNorm);
    CHECK_FALSE(backend.step(kLr, NAN, kMaxNorm).skipped);
    Weights weights = backend.weights(HEXAD_WEIGHTS_CURRENT);
    CHECK(relative_error(weights, reference.weights) <= 1e-5);
    reference.weights = std::move(weights);
  }
}

void optimizers(const Rank& rank) {
  start_runtime(rank);
  three_steps("torch.optim.AdamW", {{"betas", {0.8, 0.95}}, {"eps", 1e-6}, {"amsgrad", true}, {"weight_decay", 0.1}},
              rank);
  three_steps("torch.optim.Adam", {{"eps", 1e-6}, {"weight_decay", 0.1}}, rank);
  three_steps("torch.optim.SGD", nullptr, rank);
  three_steps("torch.optim.SGD", {{"momentum", 0.9}, {"nesterov", true}}, rank);
  three_steps("torch.optim.SGD", {{"momentum", 0.9}, {"dampening", 0.4}, {"maximize", true}}, rank);
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"optimizers", optimizers}});

// One step of plain SGD at rate 1: the weights move by the gradient that was applied.
double moved_by(const json& kwargs, double lr, double max_norm, double& norm) {
  const TemporaryDir dir;
  const Weights before = write_tiny_model(dir.path(), "llama");
  json config = policy(dir.path());
  config["optimizer"] = {{"name", "SGD"}, {"kwargs", kwargs}};
  Instance backend(config);
  auto batches = backend.batches(make_sequences(6, 1), {6, false, false});
  backend.train(batches, 20, 1.0);
  norm = backend.step(lr, NAN, max_norm).grad_norm;
  double squares = 0;
  for (const auto& [name, weight] : backend.weights(HEXAD_WEIGHTS_CURRENT))
    squares += std::pow((weight - before.at(name)).to(at::kDouble).norm().item<double>(), 2);
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("AdamW, Adam and SGD on 1 and 3 ranks equal updates of whole tensors") {
  for (int world : {1, 3}) rank_process::run("optimizers", world);
}

TEST_CASE("the gradient norm is reported before clipping, and clipping bounds the update") {
  one_rank();
  double norm = 0;
  const double free = moved_by({{"lr", 1.0}}, 1.0, 0, norm);
  CHECK(free == doctest::Approx(norm).epsilon(1e-4));
  double reported = 0;
  CHECK(moved_by({{"lr", 1.0}}, 1.0, norm / 4, reported) == doctest::Approx(norm / 4).epsilon(1e-4));
  CHECK(reported == norm);
  CHECK(moved_by({{"lr", 1.0}}, 1.0, norm * 4, reported) == doctest::Approx(norm).epsilon(1e-4));
  CHECK(moved_by({{"lr", 1.0}}, 1.0, NAN, reported) == doctest::Approx(norm).epsilon(1e-4));
}

TEST_CASE("a step without rate and decay takes the optimizer's own") {
  one_rank();
  double norm = 0;
  const double moved = moved_by({{"lr", 0.5}}, NAN, 0, norm);
  CHECK(moved == doctest::Approx(norm / 2).epsilon(1e-4));
}
