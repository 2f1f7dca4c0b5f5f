// Weights and gradients that stay between the micro-batches of a call: fewer collectives, the same step, and nothing of
// them left after the call, whether it went well or not.
#include "tests/plugins/backend/broken_group.hpp"
#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/fixed_order.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

struct Counts {
  int gathers = 0, reductions = 0;
};

class CountingGroup : public BrokenGroup {
 public:
  CountingGroup(c10d::ProcessGroup* real, Counts& counts) : BrokenGroup(real, "none"), counts_(counts) {}
  Done _allgather_base(at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& options) override {
    ++counts_.gathers;
    return BrokenGroup::_allgather_base(out, in, options);
  }
  Done _reduce_scatter_base(at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) override {
    ++counts_.reductions;
    return BrokenGroup::_reduce_scatter_base(out, in, options);
  }

 private:
  Counts& counts_;
};

// null: the key is not given.
json policy_with(const std::filesystem::path& dir, const json& reshard, const json& defer,
                 const std::string& precision = "float32") {
  json result = policy(dir, precision);
  result["dtensor_cfg"] = {{"reshard_after_forward", reshard}, {"defer_fsdp_grad_sync", defer}};
  return result;
}

// Collectives of three micro-batches of a model with a unit for each block and two for the ends.
void counted(const Rank& rank) {
  start_runtime(rank);
  Counts counts;
  std::vector<c10::intrusive_ptr<CountingGroup>> kept;
  wrap_group() = [&](void* real) {
    kept.push_back(c10::make_intrusive<CountingGroup>(static_cast<c10d::ProcessGroup*>(real), counts));
    return static_cast<void*>(static_cast<c10d::ProcessGroup*>(kept.back().get()));
  };
  TemporaryDir dir;
  write_tiny_model(dir.path(), "llama");
  const auto in_three = [&](const json& reshard, const json& defer, bool training) {
    Instance backend(policy_with(dir.path(), reshard, defer));
    REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
    std::deque<Batch> batches = backend.batches(make_sequences(6 * rank.world / 2, 3), {1, false, false});
    REQUIRE(batches.size() == 3);
    counts = {};
    if (training) {
      backend.train(batches, 30, 0.9);
    } else {
      CHECK_FALSE(backend.logprobs(batches, HEXAD_WEIGHTS_CURRENT, 0.9).empty());
    }
    return counts;
  };
  const Counts plain = in_three(true, false, true);
  const int units = plain.reductions / 3;
  CHECK(plain.reductions == 3 * units);
  CHECK(plain.gathers == 3 * (2 * units - 3));  // all but the ends and the last block again for the backward pass
  // A CPU has no memory of its own to go by; a GPU has enough once the first micro-batch has told what it takes.
  const bool gpu = test_device::is_gpu();
  const Counts chosen = in_three(nullptr, nullptr, true);
  CHECK(chosen.gathers == (gpu ? 2 * units - 3 + units : plain.gathers));
  CHECK(chosen.reductions == (gpu ? 2 * units : plain.reductions));
  {
    const FixedOrder order;  // sums that go by free memory would not repeat
    const Counts fixed = in_three(nullptr, nullptr, true);
    CHECK(fixed.gathers == chosen.gathers);
    CHECK(fixed.reductions == plain.reductions);
  }
  CHECK(in_three(nullptr, true, true).reductions == units);
  CHECK(in_three(false, nullptr, true).gathers == units);
  CHECK(in_three(false, nullptr, true).reductions == chosen.reductions);
  CHECK(in_three(true, nullptr, false).gathers == 3 * units);
  CHECK(in_three(false, nullptr, false).gathers == units);
  runtime_test::runtime().stop();
}

void agrees(const Rank& rank) {
  start_runtime(rank);
  for (const char* family : {"llama", "qwen2", "qwen3_moe"}) {
    for (const bool reshard : {false, true}) {
      const BoundedErrors errors =
          three_steps(tiny_config(family), {2, false, false},
                      [&](const std::filesystem::path& dir) { return policy_with(dir, reshard, true); });
      INFO(family << ", reshard " << reshard << ": loss " << errors.loss << " grad " << errors.grad);
      CHECK(errors.loss <= errors.bound.loss);
      CHECK(errors.grad <= errors.bound.grad);
      CHECK(errors.weight <= errors.bound.weight);
      CHECK(errors.norm <= errors.bound.norm);
    }
  }
  runtime_test::runtime().stop();
}

// Kept weights pass through the same memory, and a call that failed leaves no gradient behind.
void nothing_is_left(const Rank& rank) {
  const FixedOrder order;
  start_runtime(rank);
  TemporaryDir dir;
  write_tiny_model(dir.path(), "qwen3");
  Instance stays(policy_with(dir.path(), false, true, "bfloat16")),
      plain(policy_with(dir.path(), true, true, "bfloat16"));
  std::deque<Batch> batches = plain.batches(make_sequences(7, 3), {2, false, false});
  const auto step = [&](Instance& backend) {
    backend.train(batches, 30, 0.9);
    CHECK_FALSE(backend.step(1e-2, 0.1, 1.0, 0).skipped);
  };
  for (Instance* backend : {&stays, &plain}) {
    backend->keep(HEXAD_WEIGHTS_REFERENCE);
    step(*backend);
  }
  double loss = 0;
  CHECK(stays.try_train(batches, 30, 0.9, INFINITY, loss) == HEXAD_INTERNAL);
  for (const int32_t which : {HEXAD_WEIGHTS_CURRENT, HEXAD_WEIGHTS_REFERENCE, HEXAD_WEIGHTS_CURRENT}) {
    const auto got = stays.logprobs(batches, which, 0.9), wanted = plain.logprobs(batches, which, 0.9);
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i].equal(wanted[i]));
  }
  step(stays), step(plain);
  CHECK(same(stays.weights(HEXAD_WEIGHTS_CURRENT), plain.weights(HEXAD_WEIGHTS_CURRENT)));
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios(
    {{"residency_counted", counted}, {"residency_agrees", agrees}, {"residency_nothing_is_left", nothing_is_left}});

}  // namespace

TEST_CASE("what stays between micro-batches is neither gathered nor reduced again") {
  rank_process::run("residency_counted", 2);
}
TEST_CASE("steps in which weights and gradients stay agree with plain autograd") {
  for (int world : {2, 3}) rank_process::run("residency_agrees", world);
}
TEST_CASE("nothing stays after a call") { rank_process::run("residency_nothing_is_left", 2); }
