#include "plugins/dtensor/backend.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "modeling/backend/host_groups.hpp"
#include "modeling/backend/loss_bridge.hpp"
#include "modeling/backend/micro_batch.hpp"
#include "modeling/backend/settings/batch_invariant.hpp"
#include "modeling/backend/settings/gpu.hpp"
#include "modeling/backend/tensor_view.hpp"
#include "modeling/backend/training_calls.hpp"
#include "modeling/backend/weight/source.hpp"
#include "modeling/parallel/grad_norm.hpp"
#include "plugins/dtensor/checkpoint.hpp"

namespace hexad::dtensor {
namespace {

UnitOptions unit_options(const Settings& settings, at::Device device) {
  return {settings.compute_dtype, device, settings.cpu_offload ? at::Device(at::kCPU) : device,
          std::make_shared<modeling::SideStream>(device)};
}

Settings guarded_settings(const sdk::Call& call, const sdk::Config& config) {
  Settings settings;
  modeling::guarded([&] { settings = read_settings(config, modeling::world_size(call)); });
  modeling::guarded([&] {
    modeling::check_gpu(settings.fp8, settings.model.moe.has_value(), modeling::device_of(call), "dtensor_cfg");
  });
  modeling::check_batch_invariant(settings, modeling::device_of(call), settings.tp * settings.cp,
                                  "dtensor_cfg.tensor_parallel_size x context_parallel_size");
  return settings;
}

RunnerOptions runner_options(const Settings& settings, const Groups& groups, modeling::RouterReplay* replay,
                             modeling::Fp8Casts& casts) {
  return {settings.activation_checkpointing,
          {groups.tp, settings.sequence_parallel},
          groups.cp,
          settings.gather_tokens,
          replay,
          settings.fp8,
          &casts,
          settings.batch_invariant};
}

// Routers and reward heads count tokens, and ranks that share rows count on their number.
bool shares_prefixes(const Settings& settings, at::Device device) {
  const bool alone = settings.tp * settings.cp * settings.ep == 1;
  return device.is_cpu() && alone && !settings.batch_invariant && !settings.model.moe && !settings.model.reward_head;
}

using Replayed = std::vector<modeling::RouterReplay::Batch>;

// The micro-batch, unless it has no tokens.
Replayed with_tokens(const std::optional<modeling::MicroBatch>& batch, const hexad_batch* from) {
  return modeling::is_empty(*from) ? Replayed() : Replayed{{&*batch, from}};
}

std::optional<modeling::RouterReplay> router_replay(const Settings& settings, const Groups& groups, at::Device device) {
  if (settings.router_replay == modeling::ReplaySource::none) return std::nullopt;
  std::vector<int64_t> layers;
  for (int64_t layer = 0; layer < settings.model.num_layers; ++layer)
    if (settings.model.has_experts(layer)) layers.push_back(layer);
  return modeling::RouterReplay(settings.router_replay, settings.model, layers, device,
                                {groups.world, groups.sharing, groups.data_parallel});
}

}  // namespace

Backend::Backend(const sdk::Call& call, const sdk::Config& config)
    : Backend(call, config, modeling::StreamScope(call, modeling::device_of(call))) {}

Backend::Backend(const sdk::Call& call, const sdk::Config& config, const modeling::StreamScope&)
    : settings_(guarded_settings(call, config)),
      device_(modeling::device_of(call)),
      memory_(device_),
      model_(settings_.model, make_groups(call, settings_), unit_options(settings_, device_)),
      replay_(router_replay(settings_, model_.groups(), device_)),
      runner_(model_, runner_options(settings_, model_.groups(), replay_ ? &*replay_ : nullptr, casts_)),
      residency_(model_, casts_, memory_.meter(),
                 {settings_.reshard_after_forward, settings_.defer_grad_sync, settings_.fp8 != modeling::Fp8::off}),
      sums_(model_, settings_.sequence_parallel),
      optimizer_(settings_.optimizer),
      export_(model_) {
  on_device(call, [&] {
    modeling::load_or_make_weights(
        call, settings_, [&](const std::filesystem::path& dir) { load_model(call, dir, HEXAD_WEIGHTS_CURRENT); },
        [&](int64_t seed) { randomize_weights(model_, seed); });
  });
}

template <typename Body>
void Backend::on_device(const sdk::Call& call, Body&& body) {
  modeling::on_device(call, device_, body);
  measure_memory();
}

void Backend::load_model(const sdk::Call& call, const std::filesystem::path& dir, int32_t which) {
  for (const std::string& warning : load_weights(model_, dir, which, settings_.random_init_seed.value_or(0)))
    call.log(HEXAD_LOG_WARN, warning);
}

void Backend::describe(const sdk::Call&, hexad_backend_info& info) {
  info.num_parameters = model_.num_parameters();
  const Groups& groups = model_.groups();
  info.dp_rank = groups.dp_rank;
  info.dp_size = groups.dp_size;
  info.tp_size = settings_.tp;
  info.cp_size = settings_.cp;
  info.ep_size = settings_.ep;
  info.pp_size = 1;
  info.sequence_multiple = info.micro_batch_multiple = 1;
  info.counts_loss = groups.tp.rank() == 0 && groups.cp.rank() == 0;
  const auto outputs = modeling::output_names(settings_.model.reward_head);
  info.outputs = outputs.data();
  info.num_outputs = static_cast<int64_t>(outputs.size());
  const auto inputs = modeling::batch_inputs(settings_.router_replay);
  info.inputs = inputs.data();
  info.num_inputs = static_cast<int64_t>(inputs.size());
}

// Of an empty one nothing, but where ranks meet at their experts: there one token stands in for it.
std::optional<modeling::MicroBatch> Backend::micro_batch(const hexad_batch& given) const {
  const bool empty = modeling::is_empty(given);
  if (empty && settings_.ep == 1) return std::nullopt;
  const hexad_batch& batch = empty ? modeling::one_token() : given;
  modeling::BatchLayout wanted;
  wanted.packed = settings_.sequence_parallel || settings_.cp > 1;
  wanted.row_multiple = settings_.sequence_parallel ? settings_.tp : 1;
  wanted.batch_invariant = settings_.batch_invariant;
  wanted.share_prefixes = shares_prefixes(settings_, device_);
  const Groups& groups = model_.groups();
  wanted.context = {groups.cp, groups.cp_inner, groups.cp_outer, settings_.context.exchange};
  modeling::MicroBatch result = modeling::make_micro_batch(batch, settings_.model, device_, wanted);
  if (replay_)
    result.router_rows = modeling::router_rows(result, batch, {groups.tp, settings_.sequence_parallel}, empty);
  return result;
}

void Backend::forward(const sdk::Call& call, const hexad_forward_args& args) {
  on_device(call, [&] {
    try {
      const modeling::MemoryMeter::Span measured(memory_.meter());
      const bool replays = replay_ && args.which == HEXAD_WEIGHTS_CURRENT;
      if (replays) replay_->begin_logprobs({args.batches, static_cast<size_t>(args.num_batches)});
      Residency::Call stays(residency_, Residency::Kind::logprobs,
                            {args.batches, static_cast<size_t>(args.num_batches)});
      for (int64_t b = 0; b < args.num_batches; ++b) {
        stays.before(b);
        const std::optional<modeling::MicroBatch> batch = micro_batch(*args.batches[b]);
        modeling::LogprobOptions options = modeling::head_options(args, settings_);
        for (int64_t k = 0; k < args.num_outputs; ++k) modeling::request_output(args.outputs[b][k].name, options);
        const Replayed replayed = with_tokens(batch, args.batches[b]);
        if (replays) replay_->start_logprobs(replayed);
        const modeling::LogprobResult result = runner_.forward(batch ? &*batch : nullptr, args.which, options);
        if (replayed.empty()) continue;
        if (replays) replay_->keep(replayed);
        for (int64_t k = 0; k < args.num_outputs; ++k)
          modeling::from_dl(args.outputs[b][k].tensor, args.outputs[b][k].name)
              .copy_(modeling::output_named(result, args.outputs[b][k].name));
      }
      if (replay_) replay_->finish();
    } catch (...) {
      if (replay_) replay_->finish();
      runner_.abandon();
      throw;
    }
  });
}

void Backend::train(const sdk::Call& call, const hexad_train_args& args) {
  on_device(call, [&] {
    try {
      const modeling::MemoryMeter::Span measured(memory_.meter());
      sums_.begin();
      Residency::Call stays(residency_, Residency::Kind::training,
                            {args.batches, static_cast<size_t>(args.num_batches)});
      for (int64_t b = 0; b < args.num_batches; ++b) {
        stays.before(b);
        train_batch(call, args, b);
      }
      sums_.finish();
      trained_ = true;
    } catch (...) {
      if (replay_) replay_->finish();
      runner_.abandon();
      sums_.abandon();
      for (ShardedUnit& unit : model_.units()) unit.drop_grad();
      trained_ = false;
      throw;
    }
  });
}

void Backend::train_batch(const sdk::Call& call, const hexad_train_args& args, int64_t index) {
  const sdk::Range range(call, "dtensor micro-batch");
  const std::optional<modeling::MicroBatch> batch = micro_batch(*args.batches[index]);
  modeling::LogprobOptions options = modeling::head_options(args, settings_);
  for (int64_t k = 0; k < args.num_outputs; ++k) modeling::request_output(args.outputs[k], options);
  const Replayed replayed = with_tokens(batch, args.batches[index]);
  if (replay_) replay_->start_replay(replayed);
  const auto loss = [&](const modeling::LogprobResult& outputs) {
    return replayed.empty() ? modeling::LogprobResult() : modeling::loss_gradient(call, args, index, outputs);
  };
  runner_.train(batch ? &*batch : nullptr, options, loss, /*last=*/index + 1 == args.num_batches);
  if (replay_) replay_->finish();
}

void Backend::step(const sdk::Call& call, const hexad_step_args& args, hexad_step_stats& stats) {
  on_device(call, [&] {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> masters, grads, rounded;
    for (ShardedUnit& unit : model_.units()) {
      rounded.push_back(unit.rounded());
      masters.push_back(unit.master());
      grads.push_back(unit.grad().defined() ? unit.grad() : at::zeros_like(unit.master()));
    }
    modeling::StepParts parts;
    parts.gradient_norm = [&] { return modeling::global_grad_norm(sums_.counted(grads), 2.0, model_.groups().world); };
    double scale = 1;
    parts.scale_gradients = [&](double factor) { scale = factor; };
    parts.update = [&](double lr, double weight_decay) {
      optimizer_.step(masters, grads, lr, weight_decay, scale, rounded);
    };
    modeling::clipped_step(args, settings_.optimizer, trained_, parts, stats);
    for (size_t u = 0; u < rounded.size(); ++u) {
      model_.units()[u].drop_grad();
      stats.skipped || !rounded[u].defined() ? model_.units()[u].weights_changed()
                                             : model_.units()[u].weights_rounded();
    }
  });
}

void Backend::keep(const sdk::Call& call, int32_t which) {
  on_device(call, [&] { model_.keep(which); });
}

void Backend::load(const sdk::Call& call, const hexad_checkpoint_args& args) {
  on_device(call, [&] {
    modeling::load_parts(
        args, [&](const char* dir) { load_model(call, dir, args.which); },
        [&](const char* dir) { load_optimizer(model_, optimizer_, dir); });
  });
}

void Backend::save(const sdk::Call& call, const hexad_checkpoint_args& args) {
  on_device(call, [&] {
    modeling::save_parts(
        args, [&](const char* dir) { save_weights(model_, settings_.model_dir, dir); },
        [&](const char* dir) { save_optimizer(model_, optimizer_, dir); });
  });
}

void Backend::weight_layout(const sdk::Call&, hexad_weight_list& out) { export_.layout(out); }

void Backend::weights_begin(const sdk::Call& call, const hexad_weights_request& request) {
  on_device(call, [&] { export_.begin(request); });
}

void Backend::weights_next(const sdk::Call& call, hexad_weight_list& out) {
  on_device(call, [&] { export_.next(out); });
}

void Backend::weights_end() { export_.end(); }

void Backend::offload(const sdk::Call& call, uint64_t what) {
  on_device(call, [&] { move(what, at::kCPU); });
}

void Backend::onload(const sdk::Call& call, uint64_t what) {
  on_device(call, [&] { move(what, model_.options().shard_device); });
}

void Backend::move(uint64_t what, at::Device device) {
  // A moved unit forgets its full weights too, wherever its shards lie.
  if (device_.is_cpu()) return;
  if (what & HEXAD_OFFLOAD_PARAMS)
    for (ShardedUnit& unit : model_.units()) unit.move_to(device);
  if (what & HEXAD_OFFLOAD_OPTIMIZER) optimizer_.move_to(device);
}

void Backend::measure_memory() {
  hexad_memory_stats stats{};
  for (ShardedUnit& unit : model_.units()) {
    stats.parameter_bytes += unit.held_bytes();
    if (unit.grad().defined()) stats.gradient_bytes += static_cast<int64_t>(unit.grad().nbytes());
  }
  stats.parameter_bytes += model_.kept_bytes();
  stats.optimizer_bytes = optimizer_.state_bytes();
  memory_.update(stats);
}

void Backend::memory(const sdk::Call&, hexad_memory_stats& out) { memory_.read(out); }

}  // namespace hexad::dtensor
