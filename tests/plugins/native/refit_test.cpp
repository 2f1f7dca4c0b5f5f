// Weight updates of an engine without a model: what is in force after each, under which version.
#include "plugins/native/refit.hpp"
#include "tests/plugins/native/support/stub_engine.hpp"

using namespace native_test;
using namespace hexad::native;

namespace {

struct RefitFixture {
  hexad::modeling::ModelConfig config = stub_config();
  Weights weights = random_weights(config, 3);
  std::string victim = "model.layers.1.mlp.up_proj.weight";
  HostCall call;
  Mailbox mailbox;
  StubExecutor* executor = nullptr;
  EngineLoop loop;
  Refit refit;
  uint64_t id = 0;

  explicit RefitFixture(bool has_weights = false)
      : loop(stub_engine(has_weights, &executor), Replica(), at::kCPU, mailbox), refit(Settings(), config, loop) {}

  void send(const std::string& name, const at::Tensor& tensor) {
    as_bucket(name, tensor, {}, {}, [&](const hexad_weight_list& bucket) { refit.bucket(*call, bucket); });
  }
  void send_all_but(const std::string& left_out) {
    for (const auto& [name, tensor] : weights)
      if (name != left_out) send(name, tensor);
  }
  void update(int64_t version) {
    refit.begin(*call, version);
    send_all_but("");
    refit.end(*call, true);
  }
  // The version that a request is drawn under; -1: there are no weights.
  int64_t version_in_force() {
    mailbox.submit(sequences_of({id++}));
    EngineLoop::Pass pass = loop.run_once(*call);
    if (pass.lacks_weights) {
      const uint64_t last[] = {id - 1};
      mailbox.cancel(last);
    }
    std::vector<const hexad_completion*> events(1);
    while (mailbox.hand_out(events) == 0) loop.run_once(*call);
    const int64_t version = pass.lacks_weights ? -1 : events[0]->spans[0].version;
    mailbox.release(events);
    return version;
  }
  bool in_force(const Weights& set) const {
    const WeightMap got = executor->weights();
    return got.size() == set.size() &&
           std::ranges::all_of(set, [&](const auto& weight) { return got.at(weight.first).equal(weight.second); });
  }
};

struct WithWeights : RefitFixture {
  WithWeights() { update(1); }
};

}  // namespace

TEST_CASE_FIXTURE(RefitFixture, "refit: an update out of order is refused") {
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { send(victim, weights.at(victim)); }) ==
        "update_bucket without update_begin");
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { refit.end(*call, true); }) == "update_end without update_begin");
}

TEST_CASE_FIXTURE(RefitFixture, "refit: weights are expected while an update is on its way, and once there were any") {
  CHECK_FALSE(refit.expects_weights());
  CHECK(version_in_force() == -1);
  refit.begin(*call, 4);
  CHECK(refit.expects_weights());
  refit.end(*call, false);
  CHECK_FALSE(refit.expects_weights());
  update(5);
  CHECK(refit.expects_weights());
  CHECK(version_in_force() == 5);
  CHECK(in_force(weights));
  loop.exclusively(*call, [](Engine& engine) { engine.sleep(true), engine.wake(); });
  CHECK(refit.expects_weights());
  CHECK(version_in_force() == -1);
}

TEST_CASE_FIXTURE(WithWeights, "refit: what breaks off, is refused or incomplete leaves the old weights in force") {
  const Weights old = weights;
  weights = random_weights(config, 4);
  refit.begin(*call, 2);
  send_all_but("");
  refit.end(*call, false);
  CHECK(version_in_force() == 1);

  refit.begin(*call, 3);
  send_all_but(victim);
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { refit.end(*call, true); }).ends_with("in full: " + victim));
  CHECK(version_in_force() == 1);

  refit.begin(*call, 4);
  const std::string wrong = refusal(HEXAD_INVALID_ARGUMENT, [&] { send(victim, weights.at(victim).narrow(0, 0, 3)); });
  send_all_but("");
  CHECK(refusal(HEXAD_FAILED_PRECONDITION, [&] { refit.end(*call, true); }) ==
        "the weight update cannot be committed, a bucket of it was refused: " + wrong);
  CHECK(version_in_force() == 1);
  CHECK(in_force(old));

  update(5);
  CHECK(version_in_force() == 5);
  CHECK(in_force(weights));
}

TEST_CASE_FIXTURE(WithWeights, "refit: new weights that fail to take their place leave none, until the next update") {
  executor->refuses = true;
  CHECK_THROWS_WITH(update(2), "no memory for the weights");
  CHECK(version_in_force() == -1);
  CHECK(refit.expects_weights());
  executor->refuses = false;
  update(3);
  CHECK(version_in_force() == 3);
  CHECK(in_force(weights));
}

TEST_CASE_FIXTURE(WithWeights, "refit: the layout has every weight, whole where one rank has the model") {
  hexad_weight_list list{};
  refit.layout(*call, list);
  REQUIRE(list.count == static_cast<int64_t>(weights.size()));
  for (int64_t i = 0; i < list.count; ++i) {
    const hexad_weight_slice& slice = list.slices[i];
    CAPTURE(slice.name);
    const at::Tensor& weight = weights.at(slice.name);
    CHECK(weight.sizes() == at::IntArrayRef(slice.shape, static_cast<size_t>(slice.ndim)));
    CHECK(weight.sizes() == at::IntArrayRef(slice.global_shape, static_cast<size_t>(slice.ndim)));
  }
}
