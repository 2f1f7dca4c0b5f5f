// Backend and generator instances over toys written with the C++ wrapper.
#include <hexad/plugin.hpp>

#include "core/plugin/host/table.hpp"
#include "core/plugin/kind/backend_plugin.hpp"
#include "core/plugin/kind/generator_plugin.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace hexad::plugin;
using namespace plugin_test;
namespace sdk = hexad::sdk;

namespace {

struct ToyBackend {
  ToyBackend(const sdk::Call&, const sdk::Config& config) : name_(config.get("model_name", "")) {}
  void describe(const sdk::Call&, hexad_backend_info& info) {
    info.num_parameters = 42;
    info.outputs = outputs_;
    info.num_outputs = 1;
  }
  void forward(const sdk::Call&, const hexad_forward_args& args) {
    for (int64_t b = 0; b < args.num_batches; ++b) {
      for (float& value : sdk::view<float>(args.outputs[b][0].tensor)) value = static_cast<float>(args.temperature);
    }
  }
  void train(const sdk::Call& call, const hexad_train_args& args) {
    REQUIRE(std::string(args.outputs[0]) == "logprobs");
    for (int64_t b = 0; b < args.num_batches; ++b) {
      float value = static_cast<float>(b), grad = 0;
      int64_t one = 1;
      DLTensor value_tensor{&value, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &one, nullptr, 0}, grad_tensor = value_tensor;
      grad_tensor.data = &grad;
      const hexad_named_tensor output{"logprobs", &value_tensor, nullptr, HEXAD_AXIS_TOKEN, 0};
      DLTensor* const grads[] = {&grad_tensor};
      sdk::compute_loss(call, args, b, {&output, 1}, grads);
      sum_ += grad;
    }
  }
  void step(const sdk::Call&, const hexad_step_args& args, hexad_step_stats& stats) {
    stats.skipped = args.flags & HEXAD_STEP_DISCARD;
    stats.grad_norm = sum_;
  }
  void keep(const sdk::Call&, int32_t which) {
    if (which != HEXAD_WEIGHTS_REFERENCE) sdk::fail(HEXAD_UNIMPLEMENTED, "only a reference is kept");
  }
  void load(const sdk::Call&, const hexad_checkpoint_args& args) { name_ = args.weights_uri; }
  void save(const sdk::Call&, const hexad_checkpoint_args&) {
    sdk::fail(HEXAD_UNAVAILABLE, "%s: disk full", name_.c_str());
  }
  void weight_layout(const sdk::Call&, hexad_weight_list& out) {
    out.slices = &slice_;
    out.count = 1;
  }
  void weights_begin(const sdk::Call&, const hexad_weights_request&) { left_ = 2; }
  void weights_next(const sdk::Call&, hexad_weight_list& out) {
    out.slices = &slice_;
    out.count = left_-- > 0 ? 1 : 0;
  }
  void weights_end() { ended_ = true; }
  void offload(const sdk::Call& call, uint64_t) {
    call.check(call.host()->set_error(call.raw(), HEXAD_INTERNAL, "cannot", UINT64_MAX));
  }

  static inline bool ended_ = false;
  std::string name_;
  const char* outputs_[1] = {"logprobs"};
  hexad_weight_slice slice_{"w", nullptr, nullptr, nullptr, nullptr, 0, {kDLFloat, 32, 1}};
  int left_ = 0;
  double sum_ = 0;
};

struct ToyGenerator {
  ToyGenerator(const sdk::Call&, const sdk::Config&) {}
  void describe(const sdk::Call&, hexad_generator_info& info) { info.max_sequences = 4; }
  void submit(const sdk::Call&, std::span<const hexad_request* const> requests) {
    for (const hexad_request* request : requests) ids_.push_back(request->id);
  }
  int64_t poll(const sdk::Call&, std::span<const hexad_completion*> events, int64_t) {
    int64_t count = 0;
    while (!ids_.empty() && count < static_cast<int64_t>(events.size())) {
      auto* completion = new hexad_completion{};
      completion->id = ids_.back();
      ids_.pop_back();
      events[static_cast<size_t>(count++)] = completion;
    }
    return count;
  }
  void release(std::span<const hexad_completion* const> events) {
    for (const hexad_completion* event : events) delete event;
    released_ += events.size();
  }
  void cancel(const sdk::Call&, std::span<const uint64_t>) { ids_.clear(); }
  void update_begin(const sdk::Call&, int64_t version) { version_ = version; }
  void update_bucket(const sdk::Call&, const hexad_weight_list& bucket) { buckets_ += bucket.count; }
  void update_end(const sdk::Call&, bool commit) {
    if (commit && buckets_ == 0)
      sdk::fail(HEXAD_FAILED_PRECONDITION, "version %d has no weights", static_cast<int>(version_));
  }

  static inline size_t released_ = 0;
  std::vector<uint64_t> ids_;
  int64_t version_ = 0, buckets_ = 0;
};

template <typename Set>
LoadedPlugin loaded(Kind kind, const Set& set) {
  auto* desc = new hexad_plugin_desc{};  // as static as a plugin's own
  desc->kind = static_cast<int32_t>(kind);
  set(*desc);
  Manifest manifest;
  manifest.kind = kind;
  manifest.name = "toy";
  manifest.version = "1.0.0";
  manifest.sha256 = std::string(64, 'a');
  return {manifest, "/p/libtoy.so", desc, host_table(nullptr)};
}

const LoadedPlugin& toy_backend() {
  static const LoadedPlugin plugin =
      loaded(Kind::backend, [](auto& d) { d.backend = &sdk::BackendThunks<ToyBackend>::table; });
  return plugin;
}
const LoadedPlugin& toy_generator() {
  static const LoadedPlugin plugin =
      loaded(Kind::generator, [](auto& d) { d.generator = &sdk::GeneratorThunks<ToyGenerator>::table; });
  return plugin;
}

const hexad_batch kBatch{};
const std::vector<const hexad_batch*> kBatches{&kBatch, &kBatch, &kBatch};

}  // namespace

TEST_CASE("a backend runs forward, train with the loss callback, and step") {
  BackendPlugin backend(toy_backend(), {}, PluginConfig("policy", {{"model_name", "m"}}));
  CHECK(backend.info().num_parameters == 42);
  float value = 0;
  int64_t one = 1;
  DLTensor tensor{&value, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &one, nullptr, 0};
  hexad_named_tensor output{"logprobs", &tensor, nullptr, HEXAD_AXIS_TOKEN, 0};
  hexad_named_tensor* const outputs[] = {&output, &output, &output};
  backend.forward({}, HEXAD_WEIGHTS_CURRENT, kBatches, outputs, 1, {.temperature = 0.5});
  CHECK(value == 0.5f);

  backend.train({}, kBatches, {"logprobs"},
                [](int64_t index, auto made, auto grads) {
                  *HEXAD_F32(grads[0]) = *HEXAD_F32(made[0].tensor) + static_cast<float>(index);
                },
                {});
  CHECK(backend.step({}, 1e-3, 0, 1).grad_norm == 6);
  CHECK(backend.step({}, 1e-3, 0, 1, true).skipped == 1);
}

TEST_CASE("what the loss throws comes out of train as it was") {
  BackendPlugin backend(toy_backend(), {}, PluginConfig("policy", Json::object()));
  const auto thrown = error_of([&] {
    backend.train({}, kBatches, {"logprobs"},
                  [](int64_t, auto, auto) { hexad::fail(hexad::ErrorKind::data, "nan at row 3"); }, {});
  });
  CHECK(thrown == "nan at row 3");
}

TEST_CASE("a backend's errors have its name, and export ends what it began") {
  BackendPlugin backend(toy_backend(), {}, PluginConfig("policy", Json::object()));
  CHECK(contains(error_of([&] { backend.keep({}, HEXAD_WEIGHTS_SNAPSHOT); }),
                 "backend 'toy' 1.0.0 (/p/libtoy.so, sha256 aaaaaaaaaaaa...): keep at step 0: UNIMPLEMENTED: only a "
                 "reference is kept"));
  backend.load({}, HEXAD_CHECKPOINT_MODEL, "/models/x", "");
  CHECK(contains(error_of([&] { backend.save({}, HEXAD_CHECKPOINT_MODEL, "/a", "/b"); }),
                 "save at step 0: UNAVAILABLE: /models/x: disk full"));
  CHECK(backend.weight_layout({}).size() == 1);
  int buckets = 0;
  backend.export_weights({}, HEXAD_WEIGHTS_CURRENT, HEXAD_FORM_FULL, 1 << 20,
                         [&](const hexad_weight_list&) { ++buckets; });
  CHECK(buckets == 2);
  ToyBackend::ended_ = false;
  CHECK_THROWS_AS(backend.export_weights({}, 0, 0, 1, [](const auto&) { throw std::runtime_error("receiver"); }),
                  std::runtime_error);
  CHECK(ToyBackend::ended_);
  CHECK(contains(error_of([&] { backend.offload({}, 1); }), "offload at step 0: INTERNAL: cannot"));
  backend.onload({}, 1);  // not there: nothing happens
  CHECK(contains(error_of([&] { backend.memory({}); }), "memory at step 0: the plugin does not implement it"));
}

TEST_CASE("a generator's completions are borrowed and always released") {
  GeneratorPlugin generator(toy_generator(), {}, PluginConfig("policy.generation", Json::object()));
  CHECK(generator.info().max_sequences == 4);
  hexad_request requests[3] = {};
  for (uint64_t i = 0; i < 3; ++i) requests[i].id = i + 1;
  const hexad_request* const list[] = {&requests[0], &requests[1], &requests[2]};
  generator.submit({}, list);
  uint64_t sum = 0;
  ToyGenerator::released_ = 0;
  CHECK(generator.poll({}, 2, 0, [&](const hexad_completion& completion) { sum += completion.id; }) == 2);
  CHECK_THROWS_AS(generator.poll({}, 2, 0, [](const auto&) { throw std::runtime_error("x"); }), std::runtime_error);
  CHECK(generator.poll({}, 2, 0, [](const auto&) {}) == 0);
  CHECK(sum == 5);
  CHECK(ToyGenerator::released_ == 3);
  const uint64_t ids[] = {1};
  generator.cancel({}, ids);

  generator.update_begin({}, 7);
  CHECK(contains(error_of([&] { generator.update_end({}, true); }),
                 "update_end at step 0: FAILED_PRECONDITION: version 7 has no weights"));
  hexad_weight_list bucket{};
  bucket.count = 1;
  generator.update_bucket({}, bucket);
  generator.update_end({}, true);
  CHECK(!generator.has_layout());
  generator.pause({});
  generator.sleep({}, 1);
  generator.wake({});
}
