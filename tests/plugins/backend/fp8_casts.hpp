// Casts of weights that stay between the micro-batches of a call: the bits of calls of one micro-batch each, in which
// nothing stays, step after step; and none is left when weights have changed, in whatever way.
#pragma once
#include <algorithm>
#include <functional>

#include "tests/plugins/backend/fixed_order.hpp"
#include "tests/plugins/backend/fp8.hpp"
#include "tests/plugins/backend/fp8_conversions.hpp"
#include "tests/plugins/backend/scenarios.hpp"

namespace backend_test {

// Micro-batches of two sequences a rank, in one call or in one each.
class MicroBatchCalls {
 public:
  MicroBatchCalls(Instance& backend, const std::vector<Sequence>& data)
      : backend_(backend), together_(backend.batches(data, kPacking)) {
    const auto each = static_cast<std::ptrdiff_t>(kPacking.sequences) * backend.info().dp_size;
    for (auto begin = data.begin(); begin != data.end(); begin += each)
      apart_.push_back(backend.batches(std::vector<Sequence>(begin, begin + each), kPacking));
    REQUIRE(apart_.size() == together_.size());
  }

  double train_together() { return backend_.train(together_, kFp8Normalizer, kFp8Temperature); }
  double train_apart() {
    double loss = 0;
    for (auto& batch : apart_) loss += backend_.train(batch, kFp8Normalizer, kFp8Temperature);
    return loss;
  }
  hexad_code train_badly(double factor) {
    double ignored = 0;
    return backend_.try_train(together_, kFp8Normalizer, kFp8Temperature, factor, ignored);
  }
  at::Tensor logprobs_together(int32_t which = HEXAD_WEIGHTS_CURRENT) {
    return at::cat(backend_.logprobs(together_, which, kFp8Temperature));
  }
  at::Tensor logprobs_apart(int32_t which = HEXAD_WEIGHTS_CURRENT) {
    std::vector<at::Tensor> all;
    for (auto& batch : apart_) all.push_back(backend_.logprobs(batch, which, kFp8Temperature)[0]);
    return at::cat(all);
  }

 private:
  static constexpr Packing kPacking = {2, false, false};
  Instance& backend_;
  std::deque<Batch> together_;
  std::vector<std::deque<Batch>> apart_;
};

// A scenario of each recipe: body(the model's folder, recipe, a folder of all ranks for it alone).
template <typename Body>
void with_recipes(const rank_process::Rank& rank, const json& model, Body&& body) {
  start_runtime(rank);
  const TemporaryDir dir;
  write_fp8_model(dir.path(), model);
  for (const std::string recipe : {"tensorwise", "blockwise"}) {
    CAPTURE(recipe);
    body(dir.path(), recipe.c_str(), std::filesystem::path(rank.argument) / (recipe + std::to_string(rank.world)));
  }
  runtime_test::runtime().stop();
}

// Such a scenario on one and on two ranks.
inline void run_with_recipes(const std::string& scenario) {
  for (const int world : {1, 2}) {
    const TemporaryDir shared;
    rank_process::run(scenario, world, shared.path().string());
  }
}

// The matrices of blocks: what FP8 products read and their gradients are added to. Other gradients add up in another
// order where calls are added.
inline Weights matrices_of(const Weights& weights) {
  Weights result;
  for (const auto& [name, weight] : weights)
    if (name.find(".layers.") != std::string::npos && weight.dim() == 2 &&
        name.find("gate.weight") == std::string::npos)
      result[name] = weight;
  return result;
}

// Three steps, each from the same weights: forward and backward of all matrices, and log-probs. Collective; `shared`: a
// folder of all ranks, empty.
inline void check_casts_stay(const json& config, const std::filesystem::path& shared,
                             const std::vector<Sequence>& data) {
  const FixedOrder order;
  Instance one(config), other(config);
  REQUIRE_MESSAGE(one.code() == HEXAD_OK, one.error());
  MicroBatchCalls together(one, data), apart(other, data);
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    CHECK(together.train_together() == apart.train_apart());
    const Weights got = matrices_of(one.weights(HEXAD_WEIGHTS_GRADIENTS)),
                  want = matrices_of(other.weights(HEXAD_WEIGHTS_GRADIENTS));
    CHECK(norm_of(got) > 0);
    CHECK(same(got, want));
    const std::filesystem::path saved = shared / ("step_" + std::to_string(step));
    for (Instance* backend : {&one, &other}) CHECK_FALSE(backend->step(1e-2, 0.1, 1.0).skipped);
    one.save(saved, HEXAD_CHECKPOINT_MODEL);
    REQUIRE_MESSAGE(other.load(saved, HEXAD_CHECKPOINT_MODEL) == HEXAD_OK, other.error());
    CHECK(together.logprobs_together().equal(apart.logprobs_apart()));
  }
}

// What two of these calls take: the first knows no other yet, and may keep nothing.
struct CallCost {
  int64_t peak, conversions;  // bytes, of all calls; casts to FP8, of the second
};

inline CallCost cost_of(const json& config, const std::vector<Sequence>& data, bool together) {
  Instance backend(config);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  MicroBatchCalls calls(backend, data);
  const auto train = [&] { together ? calls.train_together() : calls.train_apart(); };
  train();
  const Fp8Conversions conversions;
  train();
  return {backend.memory().activation_peak_bytes, conversions.count()};
}

// The casts do stay. On a CPU three micro-batches in one call make fewer casts than in three, by one a matrix at least;
// peaks of memory go by buffers there that other threads give back late. On a GPU the peak of a call of equal
// micro-batches is above that of a call of one, by the casts' bytes but for the one that a call of one may hold at its
// peak. `share`: of the matrices, on this rank.
inline void check_casts_are_counted(const json& config, double share) {
  Instance backend(config);
  REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
  const auto sequences = static_cast<size_t>(2 * backend.info().dp_size);
  const std::vector<Sequence> few = make_sequences(static_cast<int>(sequences), 3);
  std::vector<Sequence> data;
  for (int i = 0; i < 3; ++i) data.insert(data.end(), few.begin(), few.end());
  int64_t elements = 0, matrices = 0;
  for (const auto& [name, weight] : matrices_of(backend.weights(HEXAD_WEIGHTS_CURRENT)))
    elements += weight.numel(), ++matrices;
  const CallCost apart = cost_of(config, data, false), together = cost_of(config, data, true);
  if (!test_device::is_gpu()) {
    CHECK(apart.conversions - together.conversions >= matrices);
  } else {
    const double casts = 2 * double(elements) * share;
    CHECK(double(together.peak - apart.peak) >= 0.5 * casts);
  }
}

// Everything that changes weights, or moves them: log-probs afterwards are those of a new instance with these weights.
class StaleCasts {
 public:
  StaleCasts(const json& config, const std::filesystem::path& shared, const std::vector<Sequence>& data)
      : config_(config), shared_(shared), data_(data), backend_(config), calls_(backend_, data) {
    calls_.train_together();
    last_ = calls_.logprobs_together();
  }

  void run() {
    const Weights start = backend_.weights(HEXAD_WEIGHTS_CURRENT);
    write_weights_of(start, 1.5, "larger");
    check("gradients alone", false);
    step();
    check("a step", true);
    CHECK(calls_.train_badly(NAN) == HEXAD_OK);
    CHECK(backend_.step(1e-2, 0, 1).skipped == 1);
    check("a step that is skipped", false);
    CHECK(calls_.train_badly(INFINITY) == HEXAD_INTERNAL);
    check("a call that fails", false);
    REQUIRE(backend_.load(folder("larger"), HEXAD_CHECKPOINT_MODEL) == HEXAD_OK);
    check("a checkpoint", true);
    kept();
    backend_.weights(HEXAD_WEIGHTS_CURRENT);
    check("a refit", false);
    backend_.offload(HEXAD_OFFLOAD_PARAMS | HEXAD_OFFLOAD_OPTIMIZER);
    backend_.onload(HEXAD_OFFLOAD_PARAMS | HEXAD_OFFLOAD_OPTIMIZER);
    check("offload and onload", false);
    calls_.train_together();
    step();
    check("a step after all this", true);
  }

 private:
  // Each rank's own: it writes the same.
  std::filesystem::path folder(const std::string& name) const { return mine_ / name; }
  void write_weights_of(Weights weights, double factor, const std::string& name) {
    for (auto& [ignored, weight] : weights) weight = weight.to(at::kFloat) * factor;
    std::filesystem::create_directories(folder(name) / "weights");
    write_weights(folder(name) / "weights", weights);
  }
  void step() { CHECK_FALSE(backend_.step(1e-2, 0.1, 1.0).skipped); }

  // Log-probs of a new instance, in which nothing stays.
  at::Tensor fresh(const std::filesystem::path& saved) {
    Instance instance(config_);
    REQUIRE_MESSAGE(instance.load(saved, HEXAD_CHECKPOINT_MODEL) == HEXAD_OK, instance.error());
    return MicroBatchCalls(instance, data_).logprobs_apart();
  }
  void check(const std::string& after, bool changed) {
    CAPTURE(after);
    const std::filesystem::path saved = shared_ / ("after_" + std::to_string(checks_++));
    backend_.save(saved, HEXAD_CHECKPOINT_MODEL);
    const at::Tensor got = calls_.logprobs_together();
    CHECK(got.equal(fresh(saved)));
    CHECK(got.equal(last_) == !changed);
    last_ = got;
  }

  // Passes under weights that are kept, between those under the current ones.
  void kept() {
    backend_.keep(HEXAD_WEIGHTS_REFERENCE);
    const at::Tensor reference = last_;
    calls_.train_together();
    step();
    check("a step beside kept weights", true);
    CHECK(calls_.logprobs_together(HEXAD_WEIGHTS_REFERENCE).equal(reference));
    check("a pass under kept weights", false);
    write_weights_of(backend_.weights(HEXAD_WEIGHTS_CURRENT), 0.5, "smaller");
    REQUIRE(backend_.load(folder("smaller"), HEXAD_CHECKPOINT_MODEL, HEXAD_WEIGHTS_REFERENCE) == HEXAD_OK);
    CHECK(calls_.logprobs_together(HEXAD_WEIGHTS_REFERENCE).equal(fresh(folder("smaller"))));
    check("kept weights from a checkpoint", false);
  }

  const json config_;
  const std::filesystem::path shared_;
  const TemporaryDir mine_;
  const std::vector<Sequence> data_;
  const FixedOrder order_;
  Instance backend_;
  MicroBatchCalls calls_;
  at::Tensor last_;
  int checks_ = 0;
};

// Sequences that ranks share evenly, three micro-batches on each.
inline std::vector<Sequence> sequences_for(int64_t data_parallel) {
  return make_sequences(static_cast<int>(6 * data_parallel), 5);
}

}  // namespace backend_test
