// Keys that choose the backend, stand for its keys and clip its gradients, by what a run of the program leaves.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/run/run_steps.hpp"

using first_party::both;
using first_party::source;

namespace {

using Strings = std::vector<std::string>;

const std::string kSgd = "{optimizer: sgd, lr: 0.5}";  // of megatron alone: dtensor goes by policy.optimizer

toy::Ended sft(const toy::TempDir& dir, const Strings& overrides) {
  const Strings few = {"policy.model_name=" + source() + "/configs/quickstart_model",
                       "++cluster.device=cpu",
                       "sft.max_num_steps=3",
                       "sft.val_period=0",
                       "sft.val_at_start=false",
                       "sft.val_at_end=false",
                       "checkpointing.enabled=false"};
  return toy::run(first_party::train(source() + "/configs/sft_quickstart.yaml", dir, both(few, overrides)), "", 600);
}

// The loss of the third step, which two updates have come before.
double loss_after(const Strings& overrides) {
  const toy::TempDir dir;
  const toy::Ended run = sft(dir, overrides);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  return first_party::lines_of(dir / "logs/exp_001/metrics.jsonl").at(2).at("train/loss");
}

double megatron(const Strings& overrides) {
  return loss_after(both({"++policy.megatron_cfg.enabled=true"}, overrides));
}

bool differ(double a, double b) { return std::abs(a - b) > 1e-4; }

}  // namespace

TEST_CASE("megatron_cfg.enabled, its model_overrides and clip_grad make another run") {
  const std::string section = "++policy.megatron_cfg.optimizer=", sgd = section + kSgd;
  const double usual = loss_after({}), chosen = megatron({sgd});
  CHECK(differ(chosen, usual));
  CHECK(loss_after({"++policy.megatron_cfg.enabled=false", sgd}) == doctest::Approx(usual));
  CHECK(megatron({"++policy.megatron_cfg.model_overrides={optimizer: " + kSgd + "}"}) == doctest::Approx(chosen));
  const auto clipped = [&](const std::string& norm) {
    return megatron({section + "{optimizer: sgd, lr: 0.5, clip_grad: " + norm + "}"});
  };
  const double little = clipped("0.01"), more = clipped("0.1");
  CHECK(differ(little, chosen));  // policy.max_grad_norm is 1
  CHECK(differ(more, chosen));
  CHECK(differ(little, more));
}

TEST_CASE("dtensor_cfg.enabled leaves one backend, or the run is refused") {
  const auto code = [](const Strings& overrides) {
    const toy::TempDir dir;
    return sft(dir, overrides).code;
  };
  const std::string other = "++policy.megatron_cfg.enabled=true";
  CHECK(code({other, "++policy.dtensor_cfg.enabled=true"}) == 2);
  CHECK(code({other, "++policy.dtensor_cfg.enabled=false"}) == 0);
  CHECK(code({"++policy.dtensor_cfg.enabled=false"}) == 2);
}
