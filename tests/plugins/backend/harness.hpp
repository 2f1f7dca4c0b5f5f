// An instance of the plugin behind its vtable, and batches for it.
#pragma once
#include <ATen/DLConvertor.h>

#include <deque>
#include <memory>
#include <optional>

#include "modeling/backend/tensor_view.hpp"
#include "tests/plugins/backend/test_host.hpp"
#include "tests/plugins/backend/tiny_model.hpp"

namespace backend_test {

// How a rank's sequences become micro-batches.
struct Packing {
  size_t sequences = 4;  // in a micro-batch
  bool padded = false;
  bool merge_rows = false;  // a mutation: all rows of a micro-batch run as one sequence
  bool mean = false;        // a mutation: gradients are divided by the number of micro-batches
};

// The micro-batches of each data-parallel rank, as Instance::batches makes them.
inline std::vector<std::vector<Pack>> packs_of(const std::vector<Sequence>& sequences, const Packing& packing,
                                               size_t ranks) {
  std::vector<std::vector<Pack>> result(ranks);
  for (size_t i = 0; i < sequences.size(); ++i) {
    std::vector<Pack>& packs = result[i % ranks];
    if (packs.empty() || packs.back().size() == packing.sequences) packs.emplace_back();
    packs.back().push_back(sequences[i]);
  }
  return result;
}

struct Batch {
  std::vector<int64_t> ids, offsets = {0};
  std::vector<float> weight;
  DLTensor dl{};
  int64_t shape[1];
  hexad_named_tensor named[2]{};
  at::Tensor experts;
  DLTensor experts_dl{};
  hexad_batch batch{};

  Batch(const std::vector<Sequence>& sequences, const Packing& packing) {
    int64_t longest = 1;
    for (const Sequence& sequence : sequences) {
      ids.insert(ids.end(), sequence.ids.begin(), sequence.ids.end());
      weight.insert(weight.end(), sequence.weight.begin(), sequence.weight.end());
      offsets.push_back(static_cast<int64_t>(ids.size()));
      longest = std::max(longest, static_cast<int64_t>(sequence.ids.size()));
    }
    if (packing.merge_rows) offsets = {0, static_cast<int64_t>(ids.size())};
    shape[0] = static_cast<int64_t>(ids.size());
    dl.data = ids.data();
    dl.device = {kDLCPU, 0};
    dl.ndim = 1;
    dl.dtype = {kDLInt, 64, 1};
    dl.shape = shape;
    named[0] = {"input_ids", &dl, nullptr, HEXAD_AXIS_TOKEN, 0};
    batch.struct_size = HEXAD_STRUCT_SIZE(hexad_batch, is_dummy);
    batch.num_sequences = static_cast<int64_t>(offsets.size()) - 1;
    batch.num_tokens = shape[0];
    batch.cu_seqlens = offsets.data();
    batch.tensors = named;
    batch.num_tensors = 1;
    batch.padded_length = packing.padded ? longest + 2 : 0;
  }
  Batch(const Batch&) = delete;

  // The second input, routed_experts: a contiguous tensor, or undefined for an absent one.
  void give_experts(const at::Tensor& routed) {
    experts = routed;
    named[1] = {"routed_experts", nullptr, nullptr, HEXAD_AXIS_TOKEN, 0};
    batch.num_tensors = 2;
    if (!experts.defined()) return;
    const auto bits = static_cast<uint8_t>(8 * experts.element_size());
    experts_dl = {experts.data_ptr(),
                  {kDLCPU, 0},
                  static_cast<int32_t>(experts.dim()),
                  {kDLInt, bits, 1},
                  const_cast<int64_t*>(experts.sizes().data()),
                  nullptr,
                  0};
    named[1].tensor = &experts_dl;
  }
};

class Instance {
 public:
  explicit Instance(const json& config, const std::string& plugin = plugin_name()) : vtable_(vtable_of(plugin)) {
    config_.document = config;
    code_ = vtable_.create(&host(), &call_, &config_, &self_);
    info_.struct_size = HEXAD_STRUCT_SIZE(hexad_backend_info, num_inputs);
    if (code_ == HEXAD_OK) check(vtable_.describe(self_, &call_, &info_));
  }
  ~Instance() {
    if (self_) vtable_.destroy(self_);
  }
  Instance(const Instance&) = delete;

  hexad_code code() const { return code_; }
  const hexad_backend_info& info() const { return info_; }
  hexad_backend* self() const { return self_; }
  hexad_call* call() {
    call_.error.clear();
    return &call_;
  }
  const std::string& error() const { return call_.error; }
  void check(hexad_code code) { REQUIRE_MESSAGE(code == HEXAD_OK, call_.error); }

  // The data-parallel rank's share of `sequences` in micro-batches, filled up with dummies to equal counts.
  std::deque<Batch> batches(const std::vector<Sequence>& sequences, const Packing& packing) {
    std::deque<Batch> result;
    const size_t world = static_cast<size_t>(info_.dp_size), first = static_cast<size_t>(info_.dp_rank);
    const size_t most = (sequences.size() + world - 1) / world,
                 count = (most + packing.sequences - 1) / packing.sequences;
    std::vector<Sequence> part;
    const auto flush = [&] {
      if (!part.empty()) result.emplace_back(part, packing);
      part.clear();
    };
    for (size_t i = first; i < sequences.size(); i += world) {
      part.push_back(sequences[i]);
      if (part.size() == packing.sequences) flush();
    }
    flush();
    while (result.size() < count) result.emplace_back(std::vector<Sequence>{sequences[0]}, packing).batch.is_dummy = 1;
    return result;
  }

  // One train call; returns this rank's loss, 0 where another rank's counts.
  double train(std::deque<Batch>& batches, double normalizer, double temperature, double factor = 1) {
    double loss = 0;
    check(try_train(batches, normalizer, temperature, factor, loss));
    return info_.counts_loss ? loss : 0;
  }
  // `factor` multiplies the gradients of the loss; at infinity the loss itself fails.
  hexad_code try_train(std::deque<Batch>& batches, double normalizer, double temperature, double factor, double& loss) {
    std::vector<const hexad_batch*> pointers;
    for (const Batch& batch : batches) pointers.push_back(&batch.batch);
    struct Context {
      std::deque<Batch>* batches;
      double normalizer, factor, loss = 0;
    } context{&batches, normalizer, factor};
    hexad_loss_callback callback{HEXAD_STRUCT_SIZE(hexad_loss_callback, compute), 0, &context,
                                 [](void* ctx, hexad_call* call, int64_t index, const hexad_named_tensor* outputs,
                                    DLTensor* const* grads, int64_t count) -> hexad_code {
                                   REQUIRE(count == 2);
                                   auto& context = *static_cast<Context*>(ctx);
                                   const Batch& batch = context.batches->at(static_cast<size_t>(index));
                                   CHECK(!batch.batch.is_dummy);
                                   if (std::isinf(context.factor))
                                     return set_error(call, HEXAD_INTERNAL, "the loss failed", UINT64_MAX);
                                   const Loss loss = loss_of(on_host(outputs[0].tensor), on_host(outputs[1].tensor),
                                                             at::tensor(batch.weight), context.normalizer);
                                   context.loss += loss.value;
                                   send(loss.grad_logprobs * context.factor, grads[0]);
                                   send(loss.grad_entropy * context.factor, grads[1]);
                                   return HEXAD_OK;
                                 }};
    const char* outputs[] = {"logprobs", "entropy"};
    hexad_train_args args{};
    args.struct_size = HEXAD_STRUCT_SIZE(hexad_train_args, top_p);
    args.batches = pointers.data();
    args.num_batches = static_cast<int64_t>(pointers.size());
    args.outputs = outputs;
    args.num_outputs = 2;
    args.loss = &callback;
    args.temperature = temperature;
    args.top_p = 1;
    const hexad_code code = vtable_.train(self_, call(), &args);
    loss = context.loss;
    return code;
  }

  hexad_step_stats step(double lr, double decay, double max_norm, uint32_t flags = 0) {
    hexad_step_args args{HEXAD_STRUCT_SIZE(hexad_step_args, max_grad_norm), flags, lr, decay, max_norm};
    hexad_step_stats stats{};
    stats.struct_size = HEXAD_STRUCT_SIZE(hexad_step_stats, grad_norm);
    check(vtable_.step(self_, call(), &args, &stats));
    return stats;
  }

  // One output of every batch under `which`.
  std::vector<at::Tensor> logprobs(std::deque<Batch>& batches, int32_t which, double temperature,
                                   const char* output = "logprobs", int64_t top_k = 0) {
    std::vector<at::Tensor> results;
    std::deque<DLTensor> views;
    std::deque<hexad_named_tensor> named;
    std::vector<const hexad_batch*> pointers;
    std::vector<hexad_named_tensor*> outputs;
    for (const Batch& batch : batches) {
      pointers.push_back(&batch.batch);
      results.push_back(at::zeros({batch.batch.num_tokens}, at::kFloat));
      DLTensor& dl = views.emplace_back(batch.dl);
      dl.data = results.back().data_ptr();
      dl.dtype = {kDLFloat, 32, 1};
      outputs.push_back(&named.emplace_back(hexad_named_tensor{output, &dl, nullptr, HEXAD_AXIS_TOKEN, 0}));
    }
    hexad_forward_args args{};
    args.struct_size = HEXAD_STRUCT_SIZE(hexad_forward_args, top_p);
    args.which = which;
    args.batches = pointers.data();
    args.num_batches = static_cast<int64_t>(pointers.size());
    args.outputs = outputs.data();
    args.num_outputs = 1;
    args.temperature = temperature;
    args.top_k = top_k;
    args.top_p = 1;
    check(vtable_.forward(self_, call(), &args));
    return results;
  }

  hexad_memory_stats memory() {
    hexad_memory_stats stats{};
    stats.struct_size = HEXAD_STRUCT_SIZE(hexad_memory_stats, reserved_bytes);
    check(vtable_.memory(self_, call(), &stats));
    return stats;
  }

  void offload(uint64_t what) { check(vtable_.offload(self_, call(), what)); }
  void onload(uint64_t what) { check(vtable_.onload(self_, call(), what)); }

  void keep(int32_t which) { check(vtable_.keep(self_, call(), which)); }

  Weights weights(int32_t which, int32_t form = HEXAD_FORM_FULL, int64_t bucket_bytes = 4096) {
    Weights result;
    hexad_weights_request request{HEXAD_STRUCT_SIZE(hexad_weights_request, max_bucket_bytes), which, form, 0,
                                  bucket_bytes};
    check(vtable_.weights_begin(self_, call(), &request));
    for (;;) {
      hexad_weight_list list{};
      list.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
      check(vtable_.weights_next(self_, call(), &list));
      if (list.count == 0) break;
      for (int64_t i = 0; i < list.count; ++i) {
        const hexad_weight_slice& slice = list.slices[i];
        REQUIRE(result.count(slice.name) == 0);
        result[slice.name] = on_host(slice.tensor);
      }
    }
    vtable_.weights_end(self_);
    return result;
  }

  void save(const std::filesystem::path& dir, uint32_t what = HEXAD_CHECKPOINT_MODEL | HEXAD_CHECKPOINT_OPTIMIZER) {
    check(try_save(dir, what));
  }
  hexad_code try_save(const std::filesystem::path& dir, uint32_t what) {
    const CheckpointArgs args(dir, what, HEXAD_WEIGHTS_CURRENT);
    return vtable_.save(self_, call(), &args.args);
  }
  hexad_code load(const std::filesystem::path& dir, uint32_t what, int32_t which = HEXAD_WEIGHTS_CURRENT) {
    const CheckpointArgs args(dir, what, which);
    return vtable_.load(self_, call(), &args.args);
  }

  // A copy on the host of what the plugin hands out on the run's device.
  static at::Tensor on_host(const DLTensor* tensor) {
    CHECK(tensor->device.device_type == runtime_test::device().device_type);
    const at::IntArrayRef shape(tensor->shape, static_cast<size_t>(tensor->ndim));
    const at::Tensor result = at::empty(shape, at::toScalarType(tensor->dtype));
    DLTensor view = hexad::modeling::to_dl(result);
    runtime_test::check_ok(runtime_test::runtime().copy(tensor, &view));
    return result;
  }

 private:
  // A host tensor into the plugin's.
  static void send(const at::Tensor& from, DLTensor* to) {
    CHECK(to->device.device_type == runtime_test::device().device_type);
    const DLTensor view = hexad::modeling::to_dl(from);
    runtime_test::check_ok(runtime_test::runtime().copy(&view, to));
  }
  struct CheckpointArgs {
    std::string weights, optimizer;
    hexad_checkpoint_args args{};
    CheckpointArgs(const std::filesystem::path& dir, uint32_t what, int32_t which)
        : weights((dir / "weights").string()), optimizer((dir / "optimizer").string()) {
      args = {HEXAD_STRUCT_SIZE(hexad_checkpoint_args, which), what, weights.c_str(), optimizer.c_str(), which, 0};
    }
  };

  const hexad_backend_vtable& vtable_;
  hexad_config config_;
  hexad_call call_;
  hexad_backend* self_ = nullptr;
  hexad_backend_info info_{};
  hexad_code code_;
};

inline json policy(const std::filesystem::path& model, const std::string& precision = "float32",
                   bool checkpointing = false, bool reshard = true) {
  return {{"model_name", model.string()},
          {"precision", precision},
          {"optimizer", {{"name", "torch.optim.AdamW"}, {"kwargs", {{"lr", 1e-3}, {"weight_decay", 0.01}}}}},
          {"dtensor_cfg", {{"activation_checkpointing", checkpointing}, {"reshard_after_forward", reshard}}}};
}

}  // namespace backend_test
