// Mixed precision: 16-bit compute over fp32 masters, gradients reduced and optimizer state kept in fp32.
#include "tests/plugins/backend/harness.hpp"
#include "tests/plugins/backend/reference.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

constexpr double kTemperature = 0.9, kNormalizer = 30, kLr = 1e-5;

std::vector<Sequence> data() { return make_sequences(7, 5); }

// One sequence a micro-batch: each gradient is rounded alike, whichever rank computes it.
double train(Instance& backend, const Rank& rank) {
  auto batches = backend.batches(data(), {1, false, false});
  return backend.train(batches, kNormalizer, kTemperature);
}

// Against `grads` of one rank, in the folder of the argument's second word. Sums in bf16 would differ by 1e-3.
void sums_in_fp32(const Rank& rank) {
  start_runtime(rank);
  std::stringstream argument(rank.argument);
  std::string precision, dir;
  argument >> precision >> dir;
  Instance backend(policy(dir + "/model", precision));
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  train(backend, rank);
  CHECK(relative_error(backend.weights(HEXAD_WEIGHTS_GRADIENTS), read_weights(dir + "/grads")) <= 1e-5);
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"sums_in_fp32", sums_in_fp32}});

struct Bound {
  const char* precision;
  double loss, grad;  // relative; of the gradients ||a - b|| / ||b|| of each tensor
};

// Roundings of 2^-9 (bf16) and 2^-12 (fp16, whose smallest gradients underflow: there is no loss scaling), through
// three blocks forward and back.
constexpr Bound kBounds[] = {{"bfloat16", 1e-2, 3e-2}, {"float16", 2e-3, 1.2e-2}};

}  // namespace

TEST_CASE("16-bit losses and gradients stay within stated bounds of fp32") {
  for (const Bound& bound : kBounds) {
    CAPTURE(bound.precision);
    const TemporaryDir dir;
    Weights weights = write_tiny_model(dir.path(), "llama");
    for (auto& [name, weight] : weights)
      if (weight.dim() == 2) weight.mul_(0.3);  // as steep as trained models are
    write_weights(dir.path(), weights);
    Reference reference(dir.path(), weights);
    Instance backend((one_rank(), policy(dir.path(), bound.precision)));
    REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
    const double want = reference.train(data(), kNormalizer, kTemperature), got = train(backend, one_rank());
    const double grad = relative_error(backend.weights(HEXAD_WEIGHTS_GRADIENTS), reference.grads);
    INFO("loss " << std::abs(got - want) / std::abs(want) << " gradient " << grad);
    CHECK(std::abs(got - want) <= bound.loss * std::abs(want));
    CHECK(grad <= bound.grad);
    CHECK(grad > bound.grad / 100);  // it did compute in 16 bits
  }
}

TEST_CASE("gradients of 16-bit compute are summed in fp32, over micro-batches and over ranks") {
  for (const Bound& bound : kBounds) {
    const TemporaryDir dir;
    write_tiny_model(dir / "model", "llama");
    Instance backend((one_rank(), policy(dir / "model", bound.precision)));
    train(backend, one_rank());
    write_weights(dir / "grads", backend.weights(HEXAD_WEIGHTS_GRADIENTS));
    rank_process::run("sums_in_fp32", 3, std::string(bound.precision) + " " + dir.path().string());
  }
}

TEST_CASE("masters and optimizer state are fp32: updates below a 16-bit rounding add up") {
  for (const Bound& bound : kBounds) {
    CAPTURE(bound.precision);
    const TemporaryDir dir;
    const Weights weights = write_tiny_model(dir / "model", "llama");
    Reference reference(dir / "model", weights);
    Instance backend((one_rank(), policy(dir / "model", bound.precision)));
    const Weights before = backend.weights(HEXAD_WEIGHTS_CURRENT);
    for (int step = 0; step < 3; ++step) {
      train(backend, one_rank());
      reference.grads = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
      reference.step(kLr, 0, 1e9);
      backend.step(kLr, 0, 1e9);
    }
    backend.save(dir.path());
    CHECK(relative_error(read_weights(dir / "weights"), reference.weights) <= 1e-7);
    int64_t changed = 0, total = 0;
    for (const auto& [name, weight] : backend.weights(HEXAD_WEIGHTS_CURRENT)) {
      CHECK(weight.equal(read_weights(dir / "weights").at(name).to(weight.scalar_type())));
      changed += weight.ne(before.at(name)).sum().item<int64_t>(), total += weight.numel();
    }
    CHECK(changed > 0);
    CHECK(changed < total / 2);
  }
}
