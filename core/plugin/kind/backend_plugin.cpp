#include "core/plugin/kind/backend_plugin.hpp"

#include <exception>

#include "core/plugin/host/staging.hpp"

namespace hexad::plugin {
namespace {

// The C callback around a LossCallback: keeps the exception for the caller of train.
struct LossThunk {
  const LossCallback& loss;
  const std::vector<std::string>& names;                 // of the outputs that were asked for
  const std::function<void(const std::string&)>& wrong;  // throws
  std::vector<bool> done;                                // by micro-batch
  std::exception_ptr thrown = nullptr;

  void check(int64_t batch_index, const hexad_named_tensor* outputs, DLTensor* const* grads, int64_t num_outputs) {
    const auto batches = static_cast<int64_t>(done.size()), wanted = static_cast<int64_t>(names.size());
    if (batch_index < 0 || batch_index >= batches)
      wrong(fmt::format("it asks for the loss of micro-batch {}, and was given {}", batch_index, batches));
    if (done[static_cast<size_t>(batch_index)])
      wrong(fmt::format("it asks for the loss of micro-batch {} a second time", batch_index));
    if (num_outputs != wanted || (wanted > 0 && (!outputs || !grads)))
      wrong(fmt::format("it gives the loss {} outputs, and was asked for {}", num_outputs, wanted));
    for (int64_t i = 0; i < wanted; ++i) {
      const std::string& name = names[static_cast<size_t>(i)];
      if (!outputs[i].name || outputs[i].name != name || !outputs[i].tensor)
        wrong(fmt::format("output {} is '{}' or has no tensor, and it was asked for '{}'", i,
                          outputs[i].name ? outputs[i].name : "", name));
      const DLTensor* grad = grads[i];
      if (grad && (element_count(*grad) != element_count(*outputs[i].tensor) || grad->dtype.bits != 32))
        wrong(fmt::format("the gradient that it gives for '{}' has not the size of the output, or is not f32", name));
    }
    done[static_cast<size_t>(batch_index)] = true;
  }

  static hexad_code compute(void* ctx, hexad_call* call, int64_t batch_index, const hexad_named_tensor* outputs,
                            DLTensor* const* grads, int64_t num_outputs) {
    auto& self = *static_cast<LossThunk*>(ctx);
    const auto count = static_cast<size_t>(num_outputs);
    try {
      self.check(batch_index, outputs, grads, num_outputs);
      self.loss(batch_index, {outputs, count}, {grads, count});
      return HEXAD_OK;
    } catch (const PluginError& error) {
      self.thrown = std::current_exception();
      return Call::from(call).set_error(error.code(), error.what());
    } catch (const std::exception& error) {
      self.thrown = std::current_exception();
      return Call::from(call).set_error(HEXAD_INTERNAL, error.what());
    }
  }
};

std::string wrong_list(const char* what, const char* const* names, int64_t count) {
  if (count < 0 || (count > 0 && !names)) return fmt::format("it says {} {}, and lists none", count, what);
  for (int64_t i = 0; i < count; ++i)
    if (!names[i] || !*names[i]) return fmt::format("{} of its {} have no name", what, count);
  return "";
}

// What is wrong with what a backend says of itself; "" if nothing is.
std::string wrong_info(const hexad_backend_info& info) {
  if (info.dp_size < 1 || info.dp_rank < 0 || info.dp_rank >= info.dp_size)
    return fmt::format("dp_rank is {} and dp_size {}, wanted a rank from 0 on of at least 1", info.dp_rank,
                       info.dp_size);
  if (info.sequence_multiple < 0 || info.micro_batch_multiple < 0)
    return fmt::format("sequence_multiple is {} and micro_batch_multiple {}", info.sequence_multiple,
                       info.micro_batch_multiple);
  const std::string outputs = wrong_list("outputs", info.outputs, info.num_outputs);
  return outputs.empty() ? wrong_list("inputs", info.inputs, info.num_inputs) : outputs;
}

}  // namespace

BackendPlugin::BackendPlugin(const LoadedPlugin& plugin, const CallContext& context, PluginConfig config)
    : Instance(plugin, Kind::backend, std::move(config)), vtable_(plugin.desc->backend) {
  create_instance(context, vtable_, self_);
  try {
    require_all_keys_read();
    info_.struct_size = HEXAD_STRUCT_SIZE(hexad_backend_info, num_inputs);
    invoke(context, "describe", [&](hexad_call* call) { return vtable_->describe(self_, call, &info_); });
    if (const std::string wrong = wrong_info(info_); !wrong.empty()) refuse(context, "describe", "B1", wrong);
  } catch (...) {
    clean_up("destroy", [&] { vtable_->destroy(self_); });
    throw;
  }
}

BackendPlugin::~BackendPlugin() {
  clean_up("destroy", [&] { vtable_->destroy(self_); });
}

void BackendPlugin::forward(const CallContext& context, int32_t which, std::span<const hexad_batch* const> batches,
                            std::span<hexad_named_tensor* const> outputs, int64_t num_outputs,
                            const LogitTransform& transform) {
  hexad_forward_args args{};
  args.struct_size = HEXAD_STRUCT_SIZE(hexad_forward_args, top_p);
  args.which = which;
  args.batches = batches.data();
  args.num_batches = static_cast<int64_t>(batches.size());
  args.outputs = outputs.data();
  args.num_outputs = num_outputs;
  args.temperature = transform.temperature;
  args.top_k = transform.top_k;
  args.top_p = transform.top_p;
  invoke(context, "forward", [&](hexad_call* call) { return vtable_->forward(self_, call, &args); });
}

void BackendPlugin::train(const CallContext& context, std::span<const hexad_batch* const> batches,
                          const std::vector<std::string>& outputs, const LossCallback& loss,
                          const LogitTransform& transform) {
  std::vector<const char*> names;
  for (const std::string& output : outputs) names.push_back(output.c_str());
  const std::function<void(const std::string&)> wrong = [&](const std::string& what) {
    refuse(context, "train", "B2", what);
  };
  LossThunk thunk{loss, outputs, wrong, std::vector<bool>(batches.size())};
  hexad_loss_callback callback{};
  callback.struct_size = HEXAD_STRUCT_SIZE(hexad_loss_callback, compute);
  callback.ctx = &thunk;
  callback.compute = LossThunk::compute;

  hexad_train_args args{};
  args.struct_size = HEXAD_STRUCT_SIZE(hexad_train_args, top_p);
  args.batches = batches.data();
  args.num_batches = static_cast<int64_t>(batches.size());
  args.outputs = names.data();
  args.num_outputs = static_cast<int64_t>(names.size());
  args.loss = &callback;
  args.temperature = transform.temperature;
  args.top_k = transform.top_k;
  args.top_p = transform.top_p;
  try {
    invoke(context, "train", [&](hexad_call* call) { return vtable_->train(self_, call, &args); });
  } catch (const PluginError&) {
    if (thunk.thrown) std::rethrow_exception(thunk.thrown);  // the loss's own words, not the backend's echo of them
    throw;
  }
  if (thunk.thrown) std::rethrow_exception(thunk.thrown);
  for (size_t i = 0; i < batches.size(); ++i)
    if (info_.counts_loss && !batches[i]->is_dummy && !thunk.done[i])
      wrong(fmt::format("it has never asked for the loss of micro-batch {} of {}", i, batches.size()));
}

hexad_step_stats BackendPlugin::step(const CallContext& context, double lr, double weight_decay, double max_grad_norm,
                                     bool discard) {
  hexad_step_args args{};
  args.struct_size = HEXAD_STRUCT_SIZE(hexad_step_args, max_grad_norm);
  args.flags = discard ? HEXAD_STEP_DISCARD : 0;
  args.lr = lr;
  args.weight_decay = weight_decay;
  args.max_grad_norm = max_grad_norm;
  hexad_step_stats stats{};
  stats.struct_size = HEXAD_STRUCT_SIZE(hexad_step_stats, grad_norm);
  invoke(context, "step", [&](hexad_call* call) { return vtable_->step(self_, call, &args, &stats); });
  return stats;
}

void BackendPlugin::keep(const CallContext& context, int32_t which) {
  invoke(context, "keep", [&](hexad_call* call) { return vtable_->keep(self_, call, which); });
}

hexad_checkpoint_args BackendPlugin::checkpoint_args(uint32_t what, const std::string& weights,
                                                     const std::string& optimizer, int32_t which) const {
  hexad_checkpoint_args args{};
  args.struct_size = HEXAD_STRUCT_SIZE(hexad_checkpoint_args, reserved);
  args.what = what;
  args.weights_uri = weights.c_str();
  args.optimizer_uri = optimizer.c_str();
  args.which = which;
  return args;
}

void BackendPlugin::load(const CallContext& context, uint32_t what, const std::string& weights,
                         const std::string& optimizer, int32_t which) {
  const hexad_checkpoint_args args = checkpoint_args(what, weights, optimizer, which);
  invoke(context, "load", [&](hexad_call* call) { return vtable_->load(self_, call, &args); });
}

void BackendPlugin::save(const CallContext& context, uint32_t what, const std::string& weights,
                         const std::string& optimizer) {
  const hexad_checkpoint_args args = checkpoint_args(what, weights, optimizer, HEXAD_WEIGHTS_CURRENT);
  invoke(context, "save", [&](hexad_call* call) { return vtable_->save(self_, call, &args); });
}

std::span<const hexad_weight_slice> BackendPlugin::weight_layout(const CallContext& context) {
  hexad_weight_list list{};
  list.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
  invoke(context, "weight_layout", [&](hexad_call* call) { return vtable_->weight_layout(self_, call, &list); });
  require_slices(context, "weight_layout", list);
  return {list.slices, static_cast<size_t>(list.count)};
}

void BackendPlugin::export_weights(const CallContext& context, int32_t which, int32_t form, int64_t max_bucket_bytes,
                                   const std::function<void(const hexad_weight_list&)>& bucket) {
  hexad_weights_request request{};
  request.struct_size = HEXAD_STRUCT_SIZE(hexad_weights_request, max_bucket_bytes);
  request.which = which;
  request.form = form;
  request.max_bucket_bytes = max_bucket_bytes;
  invoke(context, "weights_begin", [&](hexad_call* call) { return vtable_->weights_begin(self_, call, &request); });
  const auto end = [this](void*) { clean_up("weights_end", [&] { vtable_->weights_end(self_); }); };
  const std::unique_ptr<void, decltype(end)> guard(self_, end);
  for (;;) {
    hexad_weight_list list{};
    list.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
    invoke(context, "weights_next", [&](hexad_call* call) { return vtable_->weights_next(self_, call, &list); });
    if (list.count == 0) return;
    require_slices(context, "weights_next", list, /*carries=*/true);
    bucket(list);
  }
}

void BackendPlugin::offload(const CallContext& context, uint64_t what) {
  if (!HEXAD_HAS(vtable_, offload) || !vtable_->offload) return;
  invoke(context, "offload", [&](hexad_call* call) { return vtable_->offload(self_, call, what); });
}

void BackendPlugin::onload(const CallContext& context, uint64_t what) {
  if (!HEXAD_HAS(vtable_, onload) || !vtable_->onload) return;
  invoke(context, "onload", [&](hexad_call* call) { return vtable_->onload(self_, call, what); });
}

bool BackendPlugin::has_memory() const { return HEXAD_HAS(vtable_, memory) && vtable_->memory; }

hexad_memory_stats BackendPlugin::memory(const CallContext& context) {
  require_function(context, "memory", has_memory());
  hexad_memory_stats stats{};
  stats.struct_size = HEXAD_STRUCT_SIZE(hexad_memory_stats, reserved_bytes);
  invoke(context, "memory", [&](hexad_call* call) { return vtable_->memory(self_, call, &stats); });
  return stats;
}

}  // namespace hexad::plugin
