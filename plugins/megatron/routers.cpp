#include "plugins/megatron/routers.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>

#include "modeling/moe/balancing.hpp"

namespace hexad::megatron {
namespace {

constexpr std::array kLosses = {"load_balancing_loss", "seq_load_balancing_loss", "global_load_balancing_loss",
                                "z_loss"};

}  // namespace

Routers::Routers(const Settings& settings, const Groups& groups, const model::LayerPlacement& placement,
                 LocalWeights& weights, at::Device device)
    : settings_(settings), groups_(groups), weights_(weights), device_(device) {
  for (const model::Stage& stage : placement.stages[static_cast<size_t>(groups.at.pp)])
    for (int64_t layer = stage.layers.begin; layer < stage.layers.end; ++layer)
      if (settings.model.has_experts(layer))
        routers_.try_emplace(layer, settings.moe.router, device, modeling::RouterGroups{groups.tp_cp, groups.tp_dp_cp});
  if (settings.moe.replay == modeling::ReplaySource::none) return;
  std::vector<int64_t> layers;
  for (const auto& [layer, router] : routers_) layers.push_back(layer);
  replay_.emplace(settings.moe.replay, settings.model, layers, device,
                  modeling::RouterReplay::Ranks{groups.world, groups.tp_cp, groups.dp});
}

modeling::MoeRun Routers::run(int64_t layer, const modeling::MicroBatch& batch) {
  modeling::MoeRun run;
  run.router = &routers_.at(layer);
  run.router_dtype = settings_.moe.router_dtype;
  run.overlap_shared = settings_.moe.overlap_shared;
  run.route.padding = batch.router_rows.padding;
  run.route.sequences = batch.router_rows.sequences;
  run.route.num_sequences = batch.router_rows.num_sequences;
  run.route.loss_scale = loss_scale_;
  if (replay_) replay_->apply(batch, layer, run);
  return run;
}

void Routers::begin_global_batch(const Batches& batches) {
  if (!settings_.moe.balances()) return;
  double tokens = 0;
  for (const auto& batch : batches) tokens += static_cast<double>(batch.from->num_tokens);
  const at::Tensor counts = at::tensor({static_cast<double>(batches.size()), tokens}).to(device_);
  groups_.dp_cp.all_reduce(counts).wait();
  const at::Tensor host = counts.cpu() / static_cast<double>(groups_.cp.size());
  micro_batches_ = host[0].item<double>(), tokens_ = host[1].item<double>();
  loss_scale_ = 1 / std::max(1.0, settings_.moe.router.per_token_loss ? tokens_ : micro_batches_);
  for (auto& [layer, router] : routers_) router.start_global_batch();
}

std::map<std::string, double> Routers::take_losses() {
  std::map<std::string, double> means;
  if (!settings_.moe.balances()) return means;
  const modeling::RouterConfig& router = settings_.moe.router;
  const std::array coefficients = {router.aux_loss, router.seq_aux_loss, router.global_aux_loss, router.z_loss};
  at::Tensor sums = at::zeros({static_cast<int64_t>(kLosses.size())}, at::kDouble);
  for (auto& [layer, state] : routers_)
    for (const auto& [name, loss] : state.take_losses())
      sums[std::find(kLosses.begin(), kLosses.end(), name) - kLosses.begin()] +=
          (router.per_token_loss ? loss.by_tokens : loss.values).cpu().to(at::kDouble);
  const at::Tensor all = sums.to(device_);
  groups_.world.all_reduce(all).wait();
  sums = all.cpu();
  const std::vector<bool>& layers = settings_.model.moe->layers;
  const auto num_layers = static_cast<double>(std::count(layers.begin(), layers.end(), true));
  const double data_parallel = static_cast<double>(groups_.dp_cp.size()) / static_cast<double>(groups_.cp.size());
  for (size_t i = 0; i < kLosses.size(); ++i) {
    if (coefficients[i] == 0) continue;
    const bool is_global = i == 2;  // one loss of the micro-batches that data-parallel ranks run together
    const bool is_mean = i == 3;    // of the ranks of tp_cp, where the others are summands
    const double count = router.per_token_loss ? tokens_ : micro_batches_ / (is_global ? data_parallel : 1.0);
    means[kLosses[i]] = sums[static_cast<int64_t>(i)].item<double>() / (num_layers * std::max(1.0, count)) /
                        (is_mean ? static_cast<double>(groups_.tp_cp.size()) : 1.0);
  }
  return means;
}

std::string Routers::bias_name(int64_t layer) const {
  const modeling::MoeFamily& names = *settings_.model.moe->family;
  return "model.layers." + std::to_string(layer) + "." + names.block + names.expert_bias;
}

void Routers::update_expert_biases() {
  if (!settings_.moe.router.expert_bias || routers_.empty()) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> counts, biases;
  for (const auto& [layer, router] : routers_) {
    counts.push_back(router.tokens_per_expert());
    biases.push_back(weights_.leaf(HEXAD_WEIGHTS_CURRENT, bias_name(layer)));
  }
  const at::Tensor all = at::stack(counts);
  groups_.tp_dp_cp.all_reduce(all).wait();
  const at::Tensor moved = modeling::updated_expert_bias(at::stack(biases), all, settings_.moe.bias_update_rate);
  int64_t row = 0;
  for (const auto& [layer, router] : routers_) weights_.set_untrained(bias_name(layer), moved[row++]);
}

void Routers::forget_tokens() {
  for (auto& [layer, router] : routers_) router.forget_tokens();
}

}  // namespace hexad::megatron
