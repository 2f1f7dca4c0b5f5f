// The C example of the SDK, built as a stranger would build it: through hexad_add_plugin, in a project of its own.
#include <cmath>
#include <random>

#include "core/plugin/kind/loss_plugin.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using namespace plugin_test;

namespace {

struct Example {
  Example() {
    const char* root = std::getenv("HEXAD_SOURCE_DIR");
    const std::string command = fmt::format(
        "cmake -S {0}/sdk/examples/loss_c -B {1} -DCMAKE_BUILD_TYPE=Release '-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic "
        "-Werror' > {1}/log 2>&1 && cmake --build {1} >> {1}/log 2>&1",
        root ? root : ".", folder.path().string());
    REQUIRE_MESSAGE(std::system(command.c_str()) == 0, command << "\n" << read_text(folder.path() / "log"));
    options.paths = {folder.path() / "lib/hexad/plugins"};
  }
  PluginFolder folder;
  Options options;
};

// Two sequences of random tokens; keeps away from the kinks of the clip.
struct Batch {
  std::vector<float> logp, old, advantages, mask, grad;
  std::vector<int64_t> cu{0, 40, 100};
  int64_t tokens = 100;

  Batch() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (int64_t t = 0; t < tokens; ++t) {
      old.push_back(-1 + 0.2f * normal(random));
      float ratio = 1 + 0.3f * normal(random);
      if (std::abs(ratio - 0.7f) < 0.01f || std::abs(ratio - 1.3f) < 0.01f || ratio < 0.1f) ratio = 1;
      logp.push_back(old.back() + std::log(ratio));
      advantages.push_back(normal(random));
      mask.push_back(t % 7 != 0);
      grad.push_back(0);
    }
  }
  LossValue run(LossPlugin& loss) {
    const auto tensor = [&](std::vector<float>& data) {
      return DLTensor{data.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &tokens, nullptr, 0};
    };
    DLTensor a = tensor(logp), b = tensor(old), c = tensor(advantages), d = tensor(mask), g = tensor(grad);
    const std::vector<hexad_named_tensor> outputs{{"logprobs", &a, nullptr, HEXAD_AXIS_TOKEN, 0}};
    const std::vector<hexad_named_tensor> inputs{{"token_mask", &d, nullptr, HEXAD_AXIS_TOKEN, 0},
                                                 {"advantages", &c, nullptr, HEXAD_AXIS_TOKEN, 0},
                                                 {"prev_logprobs", &b, nullptr, HEXAD_AXIS_TOKEN, 0}};
    const std::vector<DLTensor*> grads{&g};
    return loss.compute({}, {2, tokens, cu.data(), 80, 2}, inputs, outputs, grads);
  }
};

}  // namespace

TEST_CASE("the C example builds without warnings, loads, and its gradient equals central differences") {
  const Example example;
  Registry registry(example.options, nullptr);
  LossPlugin loss(registry.load(Kind::loss, "ppo_clip_c"), {},
                  PluginConfig("loss_fn", {{"plugin_config", {{"clip_eps", 0.3}}}}));
  Batch batch;
  const LossValue value = batch.run(loss);
  CHECK(value.metrics.at(0).name == "clip_frac");
  CHECK(value.metrics[0].value > 0);
  CHECK(value.metrics[0].weight > 80);
  const std::vector<float> grad = batch.grad, logp = batch.logp;
  CHECK(grad[0] == 0);
  CHECK(grad[40] == 0);
  for (size_t t = 0; t < logp.size(); ++t) {
    const float step = 1e-3f;
    batch.logp[t] = logp[t] + step;
    const double up = batch.run(loss).loss, high = batch.logp[t];
    batch.logp[t] = logp[t] - step;
    const double down = batch.run(loss).loss, low = batch.logp[t];
    batch.logp[t] = logp[t];
    CHECK(std::abs((up - down) / (high - low) - grad[t]) < 1e-7);
  }
  CHECK(error_of([&] {
          LossPlugin(registry.load(Kind::loss, "ppo_clip_c"), {},
                     PluginConfig("loss_fn", {{"plugin_config", {{"clip_epss", 0.3}}}}));
        }) == "loss_fn.plugin_config.clip_epss is not used by 'ppo_clip_c'. Did you mean clip_eps?");
}
