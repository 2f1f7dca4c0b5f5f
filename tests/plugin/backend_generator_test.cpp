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
    info.dp_size = 1;
    info.outputs = outputs_;
    info.num_outputs = 1;
    change_info(info);
  }
  void forward(const sdk::Call&, const hexad_forward_args& args) {
    for (int64_t b = 0; b < args.num_batches; ++b) {
      for (float& value : sdk::view<float>(args.outputs[b][0].tensor)) value = static_cast<float>(args.temperature);
    }
  }
  void train(const sdk::Call& call, const hexad_train_args& args) {
    REQUIRE(std::string(args.outputs[0]) == "logprobs");
    std::vector<int64_t> asked = asked_;
    for (int64_t b = 0; asked_.empty() && b < args.num_batches; ++b) asked.push_back(b);
    for (const int64_t b : asked) {
      float value = static_cast<float>(b), grad = 0;
      int64_t one = 1;
      DLTensor value_tensor{&value, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &one, nullptr, 0}, grad_tensor = value_tensor;
      grad_tensor.data = &grad;
      change_grad(grad_tensor);
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
  static inline std::function<void(DLTensor&)> change_grad = [](DLTensor&) {};
  static inline std::function<void(hexad_backend_info&)> change_info = [](hexad_backend_info&) {};
  // The micro-batches whose loss it asks for, in this order; none: each once.
  static inline std::vector<int64_t> asked_ = {};
  std::string name_;
  const char* outputs_[1] = {"logprobs"};
  DLTensor tensor_{&sum_, {kDLCPU, 0}, 0, {kDLFloat, 32, 1}, nullptr, nullptr, 0};
  hexad_weight_slice slice_{"w", &tensor_, nullptr, nullptr, nullptr, 0, {kDLFloat, 32, 1}};
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

TEST_CASE("what a backend says of itself that cannot be is refused by name") {
  const auto refused = [](const std::function<void(hexad_backend_info&)>& change) {
    ToyBackend::change_info = change;
    const std::string error =
        error_of([] { BackendPlugin(toy_backend(), {}, PluginConfig("policy", Json::object())); });
    ToyBackend::change_info = [](hexad_backend_info&) {};
    const std::string who = "backend 'toy' 1.0.0 (/p/libtoy.so, sha256 aaaaaaaaaaaa...): describe at step 0: ";
    CHECK_MESSAGE(error.starts_with(who), error);
    CHECK_MESSAGE(error.ends_with(" (rule B1 of the ABI): the plugin is faulty, tell its author"), error);
    return error.starts_with(who) ? error.substr(who.size(), error.find(" (rule") - who.size()) : error;
  };
  CHECK(refused([](auto& info) { info.dp_size = 0; }) ==
        "dp_rank is 0 and dp_size 0, wanted a rank from 0 on of at least 1");
  CHECK(refused([](auto& info) { info.dp_rank = 1; }) ==
        "dp_rank is 1 and dp_size 1, wanted a rank from 0 on of at least 1");
  CHECK(refused([](auto& info) { info.sequence_multiple = -8; }) ==
        "sequence_multiple is -8 and micro_batch_multiple 0");
  CHECK(refused([](auto& info) { info.num_outputs = -1; }) == "it says -1 outputs, and lists none");
  CHECK(refused([](auto& info) { info.num_inputs = 2; }) == "it says 2 inputs, and lists none");
}

TEST_CASE("a backend asks for the loss of every micro-batch once") {
  const auto refused = [](std::vector<int64_t> asked, bool counts_loss = true) {
    ToyBackend::asked_ = std::move(asked);
    ToyBackend::change_info = [=](hexad_backend_info& info) { info.counts_loss = counts_loss; };
    BackendPlugin backend(toy_backend(), {}, PluginConfig("policy", Json::object()));
    const std::string error = error_of([&] { backend.train({}, kBatches, {"logprobs"}, [](auto...) {}, {}); });
    ToyBackend::asked_.clear();
    ToyBackend::change_info = [](hexad_backend_info&) {};
    return error;
  };
  CHECK(refused({2, 0, 1}) == "(no error)");
  CHECK(refused({0}, /*counts_loss=*/false) == "(no error)");
  const std::string who = "backend 'toy' 1.0.0 (/p/libtoy.so, sha256 aaaaaaaaaaaa...): train at step 0: ";
  const std::string rule = " (rule B2 of the ABI): the plugin is faulty, tell its author";
  CHECK(refused({0, 3}) == who + "it asks for the loss of micro-batch 3, and was given 3" + rule);
  CHECK(refused({-1}) == who + "it asks for the loss of micro-batch -1, and was given 3" + rule);
  CHECK(refused({1, 1}) == who + "it asks for the loss of micro-batch 1 a second time" + rule);
  CHECK(refused({0, 1}) == who + "it has never asked for the loss of micro-batch 2 of 3" + rule);
}

TEST_CASE("a backend's gradients have the size of its outputs") {
  const auto refused = [](std::function<void(DLTensor&)> change) {
    ToyBackend::change_grad = std::move(change);
    BackendPlugin backend(toy_backend(), {}, PluginConfig("policy", Json::object()));
    const std::string error = error_of([&] { backend.train({}, kBatches, {"logprobs"}, [](auto...) {}, {}); });
    ToyBackend::change_grad = [](DLTensor&) {};
    return error;
  };
  static int64_t two = 2;
  const std::string wrong =
      "train at step 0: the gradient that it gives for 'logprobs' has not the size of the output, or is not f32 (rule "
      "B2";
  CHECK(contains(refused([](DLTensor& grad) { grad.shape = &two; }), wrong));
  CHECK(contains(refused([](DLTensor& grad) { grad.dtype.bits = 16; }), wrong));
  CHECK(refused([](DLTensor&) {}) == "(no error)");
}

TEST_CASE("weights that cannot be are refused by name") {
  struct Bent : BackendPlugin {
    using BackendPlugin::BackendPlugin;
    using BackendPlugin::require_slices;
  } bent(toy_backend(), {}, PluginConfig("policy", Json::object()));
  const auto refused = [&](const hexad_weight_slice& slice, bool carries = false) {
    const hexad_weight_list list{0, 0, &slice, 1};
    const std::string error = error_of([&] { bent.require_slices({}, "weights_next", list, carries); });
    const size_t at = error.find("weights_next at step 0: ");
    return at == error.npos ? error : error.substr(at + 24, error.find(" (rule W1") - at - 24);
  };
  int64_t whole[] = {4}, at[] = {1}, extent[] = {4};
  const hexad_weight_slice good{"w", nullptr, whole, at, extent, 1, {kDLFloat, 32, 1}};
  CHECK(refused(good) == "'w' has 4 elements from 1 on of the 4 of dimension 0");
  extent[0] = 3;
  CHECK(refused(good) == "(no error)");
  CHECK(refused(good, /*carries=*/true) == "'w' comes without its tensor, or with one of other dimensions");
  hexad_weight_slice bad = good;
  bad.name = nullptr;
  CHECK(refused(bad) == "weight 0 of 1 has no name");
  bad = good, bad.ndim = -1;
  CHECK(refused(bad) == "'w' has -1 dimensions, wanted 0 to 16, with their extents");
  bad = good, bad.shape = nullptr;
  CHECK(refused(bad) == "'w' has 1 dimensions, wanted 0 to 16, with their extents");
  const hexad_weight_list none{0, 0, nullptr, 2};
  CHECK(contains(error_of([&] { bent.require_slices({}, "weight_layout", none); }),
                 "weight_layout at step 0: it lists 2 weights, and has no list (rule W1"));
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
