#include "plugins/megatron/backend.hpp"

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
#include "plugins/megatron/checkpoint.hpp"

namespace hexad::megatron {
namespace {

template <typename Make>
auto guarded(Make&& make) {
  std::optional<decltype(make())> result;
  modeling::guarded([&] { result.emplace(make()); });
  return std::move(*result);
}

Settings guarded_settings(const sdk::Call& call, const sdk::Config& config) {
  const Settings settings = guarded([&] { return read_settings(config, modeling::world_size(call)); });
  const model::ParallelSizes& sizes = settings.sizes;
  modeling::guarded([&] {
    modeling::check_gpu(settings.fp8, settings.model.moe.has_value(), modeling::device_of(call), "megatron_cfg");
  });
  modeling::check_batch_invariant(settings, modeling::device_of(call), sizes.tensor * sizes.pipeline * sizes.context,
                                  "megatron_cfg.tensor_model_parallel_size x pipeline_model_parallel_size x "
                                  "context_parallel_size");
  return settings;
}

// The micro-batches that have tokens.
Routers::Batches filled(const MicroBatches& batches, const hexad_batch* const* from, int64_t count) {
  Routers::Batches result;
  for (int64_t b = 0; b < count; ++b)
    if (!modeling::is_empty(*from[b])) result.push_back({&*batches[static_cast<size_t>(b)], from[b]});
  return result;
}

}  // namespace

Backend::Backend(const sdk::Call& call, const sdk::Config& config)
    : Backend(call, config, modeling::StreamScope(call, modeling::device_of(call))) {}

Backend::Backend(const sdk::Call& call, const sdk::Config& config, const modeling::StreamScope&)
    : settings_(guarded_settings(call, config)),
      device_(modeling::device_of(call)),
      memory_(device_),
      grid_(guarded([&] { return model::ParallelGrid(settings_.sizes); })),
      placement_(guarded([&] { return model::place_layers(settings_.placement); })),
      groups_(make_groups(call, grid_, settings_)),
      weights_(settings_, groups_, placement_, device_),
      gradients_(settings_, groups_, weights_),
      optimizer_(settings_, groups_, weights_, gradients_),
      routers_(settings_, groups_, placement_, weights_, device_),
      casts_(settings_, memory_.meter(), device_),
      pipeline_(settings_, groups_, placement_, weights_, gradients_, routers_, casts_.casts(), device_),
      transfer_(settings_, groups_, grid_, placement_, weights_, optimizer_) {
  on_device(call, [&] {
    modeling::load_or_make_weights(
        call, settings_, [&](const std::filesystem::path& dir) { load_model(call, dir, HEXAD_WEIGHTS_CURRENT); },
        [&](int64_t seed) { randomize_weights(settings_, weights_, optimizer_, seed); });
  });
}

template <typename Body>
void Backend::on_device(const sdk::Call& call, Body&& body) {
  modeling::on_device(call, device_, body);
  measure_memory();
}

void Backend::load_model(const sdk::Call& call, const std::filesystem::path& dir, int32_t which) {
  for (const std::string& warning : load_weights(settings_, weights_, optimizer_, dir, which))
    call.log(HEXAD_LOG_WARN, warning);
}

void Backend::describe(const sdk::Call&, hexad_backend_info& info) {
  for (const modeling::WeightInfo& weight : weights_.table()) {
    int64_t elements = 1;
    for (int64_t extent : weight.shape) elements *= extent;
    info.num_parameters += elements;
  }
  info.dp_rank = groups_.at.dp;
  info.dp_size = grid_.data_parallel();
  info.tp_size = settings_.sizes.tensor;
  info.pp_size = settings_.sizes.pipeline;
  info.cp_size = settings_.sizes.context;
  info.ep_size = settings_.sizes.expert;
  info.sequence_multiple = info.micro_batch_multiple = 1;
  info.counts_loss = pipeline_.has_loss() && groups_.at.tp == 0 && groups_.at.cp == 0;
  const auto outputs = modeling::output_names(settings_.model.reward_head);
  info.outputs = outputs.data();
  info.num_outputs = static_cast<int64_t>(outputs.size());
  const auto inputs = modeling::batch_inputs(settings_.moe.replay);
  info.inputs = inputs.data();
  info.num_inputs = static_cast<int64_t>(inputs.size());
}

// Dummies are left out where data-parallel ranks meet only when the gradients are reduced. Where they meet at their
// experts or routers too, one token stands in for each: it counts nothing. With virtual stages the schedule wants whole
// groups of micro-batches; nothing fills them up.
MicroBatches Backend::micro_batches(const hexad_batch* const* batches, int64_t count) const {
  modeling::BatchLayout wanted;
  wanted.packed = true;
  wanted.row_multiple = settings_.sequence_parallel ? settings_.sizes.tensor : 1;
  wanted.batch_invariant = settings_.batch_invariant;
  wanted.context = {groups_.cp, groups_.cp_inner, groups_.cp_outer, settings_.context.exchange};
  const modeling::TensorParallel tp{groups_.tp, settings_.sequence_parallel};
  MicroBatches result;
  for (int64_t b = 0; b < count; ++b) {
    const bool empty = modeling::is_empty(*batches[b]);
    const hexad_batch* batch = empty ? settings_.meets() ? &modeling::one_token() : nullptr : batches[b];
    result.push_back(batch ? std::optional(modeling::make_micro_batch(*batch, settings_.model, device_, wanted))
                           : std::nullopt);
    if (batch && settings_.model.moe)
      result.back()->router_rows = modeling::router_rows(*result.back(), *batch, tp, empty);
  }
  while (settings_.sizes.virtual_pipeline && result.size() % static_cast<size_t>(settings_.sizes.pipeline) != 0)
    result.emplace_back(std::nullopt);
  return result;
}

void Backend::forward(const sdk::Call& call, const hexad_forward_args& args) {
  on_device(call, [&] {
    if (args.num_batches == 0) return;
    const modeling::MemoryMeter::Span measured(memory_.meter());
    modeling::LogprobOptions options = modeling::head_options(args, settings_);
    for (int64_t k = 0; k < args.num_outputs; ++k) modeling::request_output(args.outputs[0][k].name, options);
    const MicroBatches batches = micro_batches(args.batches, args.num_batches);
    const Routers::Batches with_tokens = filled(batches, args.batches, args.num_batches);
    const CastResidency::Call stays(
        casts_,
        args.which == HEXAD_WEIGHTS_CURRENT ? CastResidency::Kind::logprobs : CastResidency::Kind::kept_logprobs,
        {args.batches, static_cast<size_t>(args.num_batches)});
    modeling::RouterReplay* const replay = args.which == HEXAD_WEIGHTS_CURRENT ? routers_.replay() : nullptr;
    try {
      if (replay) replay->begin_logprobs({args.batches, static_cast<size_t>(args.num_batches)});
      if (replay) replay->start_logprobs(with_tokens);
      pipeline_.forward(batches, args.which, options, [&](int64_t b, const modeling::LogprobResult& result) {
        if (modeling::is_empty(*args.batches[b])) return;
        for (int64_t k = 0; k < args.num_outputs; ++k) {
          const hexad_named_tensor& output = args.outputs[b][k];
          modeling::from_dl(output.tensor, output.name).copy_(modeling::output_named(result, output.name));
        }
      });
      weights_.release_all(args.which);
      if (replay) replay->keep(with_tokens);
      if (replay) replay->finish();
    } catch (...) {
      if (replay) replay->finish();
      weights_.release_all(args.which);
      throw;
    }
  });
}

void Backend::train(const sdk::Call& call, const hexad_train_args& args) {
  on_device(call, [&] {
    const sdk::Range range(call, "megatron train");
    const modeling::MemoryMeter::Span measured(memory_.meter());
    modeling::LogprobOptions options = modeling::head_options(args, settings_);
    for (int64_t k = 0; k < args.num_outputs; ++k) modeling::request_output(args.outputs[k], options);
    const CastResidency::Call stays(casts_, CastResidency::Kind::training,
                                    {args.batches, static_cast<size_t>(args.num_batches)});
    try {
      const MicroBatches batches = micro_batches(args.batches, args.num_batches);
      const Routers::Batches with_tokens = filled(batches, args.batches, args.num_batches);
      routers_.begin_global_batch(with_tokens);
      if (routers_.replay()) routers_.replay()->start_replay(with_tokens);
      pipeline_.train(batches, options, [&](int64_t b, const modeling::LogprobResult& outputs) {
        if (modeling::is_empty(*args.batches[b])) return modeling::LogprobResult();
        return modeling::loss_gradient(call, args, b, outputs);
      });
      if (routers_.replay()) routers_.replay()->finish();
      gradients_.finish();
      for (const auto& [name, loss] : routers_.take_losses())
        call.metric(("moe/" + name).c_str(), loss, 1, HEXAD_REDUCE_MEAN);
      trained_ = true;
    } catch (...) {
      routers_.forget_tokens();
      if (routers_.replay()) routers_.replay()->finish();
      gradients_.drop();
      weights_.release_all(HEXAD_WEIGHTS_CURRENT);
      trained_ = false;
      throw;
    }
  });
}

void Backend::step(const sdk::Call& call, const hexad_step_args& args, hexad_step_stats& stats) {
  on_device(call, [&] {
    modeling::StepParts parts;
    parts.gradient_norm = [&] { return optimizer_.gradient_norm(); };
    parts.scale_gradients = [&](double factor) { gradients_.scale(factor); };
    parts.update = [&](double lr, double weight_decay) {
      routers_.update_expert_biases();
      optimizer_.step(lr, weight_decay);
    };
    modeling::clipped_step(args, settings_.optimizer, trained_, parts, stats);
    gradients_.drop();
    routers_.forget_tokens();
  });
}

void Backend::keep(const sdk::Call& call, int32_t which) {
  on_device(call, [&] { weights_.keep(which); });
}

void Backend::load(const sdk::Call& call, const hexad_checkpoint_args& args) {
  on_device(call, [&] {
    modeling::load_parts(
        args, [&](const char* dir) { load_model(call, dir, args.which); },
        [&](const char* dir) { load_optimizer(weights_, optimizer_, dir); });
  });
}

void Backend::save(const sdk::Call& call, const hexad_checkpoint_args& args) {
  on_device(call, [&] {
    modeling::save_parts(
        args, [&](const char* dir) { save_weights(settings_, groups_, weights_, transfer_, dir); },
        [&](const char* dir) { save_optimizer(groups_, weights_, optimizer_, transfer_, dir); });
  });
}

void Backend::weight_layout(const sdk::Call&, hexad_weight_list& out) { transfer_.layout(out); }

void Backend::weights_begin(const sdk::Call& call, const hexad_weights_request& request) {
  on_device(call, [&] { transfer_.begin(request); });
}

void Backend::weights_next(const sdk::Call& call, hexad_weight_list& out) {
  on_device(call, [&] { transfer_.next(out); });
}

void Backend::weights_end() { transfer_.end(); }

void Backend::offload(const sdk::Call& call, uint64_t what) {
  on_device(call, [&] { move(what, at::kCPU); });
}

void Backend::onload(const sdk::Call& call, uint64_t what) {
  on_device(call, [&] { move(what, device_); });
}

// Kept weights lie on the host always.
void Backend::move(uint64_t what, at::Device device) {
  if (what & HEXAD_OFFLOAD_PARAMS) weights_.move_to(device);
  if (what & HEXAD_OFFLOAD_OPTIMIZER) optimizer_.move_to(device);
}

void Backend::measure_memory() {
  hexad_memory_stats stats{};
  stats.parameter_bytes = weights_.bytes() + optimizer_.master_bytes();
  stats.gradient_bytes = gradients_.bytes();
  stats.optimizer_bytes = optimizer_.state_bytes();
  memory_.update(stats);
}

void Backend::memory(const sdk::Call&, hexad_memory_stats& out) { memory_.read(out); }

}  // namespace hexad::megatron
