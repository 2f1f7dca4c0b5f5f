// Instances over plugins written with the C++ wrapper, compiled into this test: calls, errors, staging.
#include "core/plugin/kind/loss_plugin.hpp"

#include <hexad/plugin.hpp>

#include "core/plugin/host/table.hpp"
#include "tests/plugin/fake_runtime.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using namespace plugin_test;
namespace sdk = hexad::sdk;

namespace {

// loss = scale * sum(x * w) over host memory; grad = scale * w.
struct ToyLoss {
  static constexpr hexad_tensor_spec inputs[] = {
      sdk::token_f32("x", HEXAD_SPEC_DIFFERENTIABLE),
      sdk::token_f32("y", HEXAD_SPEC_DIFFERENTIABLE | HEXAD_SPEC_OPTIONAL),
      sdk::token_f32("w"),
      sdk::sample_f32("unused", HEXAD_SPEC_OPTIONAL),
  };
  static constexpr hexad_metric_spec metrics[] = {sdk::metric("sum", HEXAD_REDUCE_SUM),
                                                  sdk::metric("dropped", HEXAD_REDUCE_SUM)};

  ToyLoss(const sdk::Call&, const sdk::Config& config)
      : scale_(config.get("scale", 1.0)), mode_(config.get("mode", "")) {
    if (mode_ == "refuse") sdk::fail(HEXAD_INVALID_ARGUMENT, "mode %s is refused", mode_.c_str());
  }
  void plan(const sdk::Call&, hexad_loss_plan& plan) const {
    plan.used_inputs &= ~uint64_t{8};
    plan.used_metrics &= ~uint64_t{2};
  }
  void compute(const sdk::Call& call, const sdk::LossBatch& batch, sdk::LossOut& out) {
    if (mode_ == "throw") throw std::runtime_error("a bug");
    if (mode_ == "type") sdk::view<const int64_t>(batch.tensor(0));
    if (mode_ == "cancel") sdk::fail(HEXAD_CANCELLED, "stopped at step %d", static_cast<int>(call.step()));
    const auto x = batch.f32(0), w = batch.f32(2);
    REQUIRE(batch.tensor(0)->device.device_type == kDLCPU);
    REQUIRE(!batch.has(3));
    const auto grad = out.grad(0);
    for (size_t t = 0; t < x.size(); ++t) {
      out.loss() += scale_ * x[t] * w[t];
      grad[t] = static_cast<float>(scale_ * w[t]);
    }
    out.set_metric(0, out.loss());
  }
  void end_step(const sdk::Call&, const hexad_step_metrics& metrics) { scale_ = metrics.values[0]; }
  std::string save_state(const sdk::Call&) { return std::to_string(scale_); }
  void load_state(const sdk::Call&, std::string_view state) { scale_ = std::stod(std::string(state)); }

  double scale_;
  std::string mode_;
};

hexad_plugin_desc describe(int32_t kind) {
  hexad_plugin_desc desc{};
  desc.struct_size = HEXAD_STRUCT_SIZE(hexad_plugin_desc, next);
  desc.kind = kind;
  return desc;
}

LoadedPlugin loaded(Kind kind, const hexad_plugin_desc& desc, const hexad_runtime* runtime = nullptr) {
  Manifest manifest;
  manifest.kind = kind;
  manifest.name = "toy";
  manifest.version = "1.2.0";
  manifest.sha256 = "12ab34cd56ef" + std::string(52, '0');
  return {manifest, "/p/libtoy.so", &desc, host_table(runtime)};
}

const LoadedPlugin& toy_loss(const hexad_runtime* runtime = nullptr) {
  static hexad_plugin_desc desc = [] {
    hexad_plugin_desc made = describe(HEXAD_KIND_LOSS);
    made.loss = &sdk::LossThunks<ToyLoss>::table;
    return made;
  }();
  static const LoadedPlugin plain = loaded(Kind::loss, desc), device = loaded(Kind::loss, desc, &fake_runtime());
  return runtime ? device : plain;
}

PluginConfig config(const Json& plugin_config) { return PluginConfig("loss_fn", {{"plugin_config", plugin_config}}); }

// Three tokens in two sequences.
struct Batch {
  std::vector<float> x{1, 2, 3}, w{4, 5, 6}, grad{9, 9, 9};
  int64_t tokens = 3;
  std::vector<int64_t> cu{0, 1, 3};
  DLDevice device{kDLCPU, 0};
  DLTensor x_tensor = tensor(x), w_tensor = tensor(w), grad_tensor = tensor(grad);

  DLTensor tensor(std::vector<float>& data) { return {data.data(), device, 1, {kDLFloat, 32, 1}, &tokens, nullptr, 0}; }
  LossValue run(LossPlugin& loss, const CallContext& context = {}) {
    const std::vector<hexad_named_tensor> outputs{{"x", &x_tensor, nullptr, HEXAD_AXIS_TOKEN, 0}};
    const std::vector<hexad_named_tensor> inputs{{"w", &w_tensor, nullptr, HEXAD_AXIS_TOKEN, 0}};
    const std::vector<DLTensor*> grads{&grad_tensor};
    return loss.compute(context, {2, 3, cu.data(), 3, 2}, inputs, outputs, grads);
  }
};

}  // namespace

TEST_CASE("a loss computes value, gradient and the metrics that its plan keeps") {
  LossPlugin loss(toy_loss(), {}, config({{"scale", 2}}));
  CHECK(loss.uses("y"));
  CHECK(!loss.uses("unused"));
  CHECK(!loss.uses("nothing"));
  CHECK(loss.differentiable_inputs() == std::vector<std::string>{"x", "y"});
  CHECK(loss.differentiable_inputs(true) == std::vector<std::string>{"x"});
  CHECK(loss.plain_inputs() == std::vector<std::string>{"w"});
  Batch batch;
  const LossValue value = batch.run(loss);
  CHECK(value.loss == 64);
  REQUIRE(value.metrics.size() == 1);
  CHECK(value.metrics[0].name == "sum");
  CHECK(value.metrics[0].value == 64);
  CHECK(batch.grad == std::vector<float>{8, 10, 12});
}

TEST_CASE("tensors on a device are staged for a loss that takes host memory") {
  LossPlugin loss(toy_loss(&fake_runtime()), {}, config(Json::object()));
  Batch batch;
  for (DLTensor* tensor : {&batch.x_tensor, &batch.grad_tensor}) tensor->device = {kDLCUDA, 0};
  CHECK(batch.run(loss).loss == 32);
  CHECK(batch.grad == std::vector<float>{4, 5, 6});
  CHECK(live_fake_tensors() == 0);
}

TEST_CASE("a missing, mistyped or misshapen input is told before the plugin is called") {
  LossPlugin loss(toy_loss(), {}, config(Json::object()));
  const std::string who = "loss 'toy' 1.2.0 (/p/libtoy.so, sha256 12ab34cd56ef...): ";
  Batch batch;
  CHECK(error_of([&] {
          loss.compute({}, {2, 3, batch.cu.data(), 3, 2}, {}, {}, {});
        }) == who + "needs 'x', which this batch does not have (it has nothing)");
  batch.w_tensor.dtype = {kDLInt, 64, 1};
  CHECK(error_of([&] { batch.run(loss); }) == who + "input 'w' has dtype i64, wanted f32");
  Batch shorter;
  int64_t two = 2, stride = 2;
  shorter.x_tensor.shape = &two;
  CHECK(error_of([&] { shorter.run(loss); }) == who + "input 'x' has 2 rows, wanted 3 (one a token)");
  Batch strided;
  strided.x_tensor.strides = &stride;
  CHECK(error_of([&] { strided.run(loss); }) == who + "input 'x' is not contiguous");
}

TEST_CASE("failures name plugin, function and step") {
  const auto failing = [](const char* mode) {
    CallContext context;
    context.step = 812;
    return error_of([&] {
      LossPlugin loss(toy_loss(), context, config({{"mode", mode}}));
      Batch().run(loss, context);
    });
  };
  const std::string who = "loss 'toy' 1.2.0 (/p/libtoy.so, sha256 12ab34cd56ef...): ";
  CHECK(failing("refuse") == who + "create at step 812: INVALID_ARGUMENT: mode refuse is refused");
  CHECK(failing("throw") == who + "compute at step 812: INTERNAL: a bug");
  CHECK(failing("cancel") == who + "compute at step 812: CANCELLED: stopped at step 812");
  CHECK(failing("type") ==
        who + "compute at step 812: INVALID_ARGUMENT: a tensor has dtype (code 2, 32 bits), wanted (code 0, 64 bits)");
  CHECK(error_of([] {
          LossPlugin(toy_loss(), {}, config({{"scale", "x"}}));
        }) ==
        who + "create at step 0: INVALID_ARGUMENT: loss_fn.plugin_config.scale must be a number, got string \"x\"");
  CHECK(error_of([] {
          LossPlugin(toy_loss(), {}, config({{"scal", 1}}));
        }) == "loss_fn.plugin_config.scal is not used by 'toy'. Did you mean scale?");
}

TEST_CASE("a plugin that breaks the rules of errors is called faulty") {
  const PluginFolder folder;
  folder.add("silent", "'-DCOMPUTE_BODY=return 77;'");
  folder.add("spoken", "'-DCOMPUTE_BODY=return self->host->set_error(call, 8, \"no room\", UINT64_MAX);'");
  folder.add("empty", "'-DCREATE_BODY=return 0;'");
  Options options;
  options.paths = {folder.path()};
  Registry registry(options, nullptr);
  const auto failing = [&](const char* name) {
    return error_of([&] {
      LossPlugin loss(registry.load(Kind::loss, name), {}, config(Json::object()));
      Batch batch;
      const std::vector<hexad_named_tensor> outputs{{"logprobs", &batch.x_tensor, nullptr, HEXAD_AXIS_TOKEN, 0}};
      const std::vector<DLTensor*> grads{&batch.grad_tensor};
      loss.compute({}, {2, 3, batch.cu.data(), 3, 2}, {}, outputs, grads);
    });
  };
  CHECK(contains(failing("silent"),
                 "compute at step 0: code 77: it failed without saying why (host->set_error was not called): "
                 "the plugin is faulty, tell its author"));
  CHECK(contains(failing("spoken"), "compute at step 0: RESOURCE_EXHAUSTED: no room"));
  CHECK(contains(failing("empty"), "create at step 0: INTERNAL: returned OK and no instance: the plugin is faulty"));
}

TEST_CASE("a loss keeps state and hears of finished steps") {
  LossPlugin loss(toy_loss(), {}, config({{"scale", 3}}));
  CHECK(std::stod(loss.save_state({})) == 3);
  const std::vector<std::pair<std::string, double>> metrics{{"kl", 5}};
  loss.end_step({}, metrics);
  CHECK(std::stod(loss.save_state({})) == 5);
  loss.load_state({}, "7");
  CHECK(std::stod(loss.save_state({})) == 7);
  CHECK(!loss.has_advantages());
  Batch batch;
  CHECK(contains(error_of([&] { loss.advantages({}, {}, batch.x_tensor); }),
                 "advantages at step 0: the plugin does not implement it"));
}
