// The routers of this rank's layers: how each is run, and what is done with them once a step.
#pragma once
#include <map>
#include <optional>

#include "lib/model/layer_placement.hpp"
#include "modeling/backend/router_replay.hpp"
#include "modeling/moe/moe_layer.hpp"
#include "plugins/megatron/local_weights.hpp"

namespace hexad::megatron {

class Routers {
 public:
  Routers(const Settings& settings, const Groups& groups, const model::LayerPlacement& placement, LocalWeights& weights,
          at::Device device);

  // How a layer with experts is run; the dispatcher is the caller's business.
  modeling::MoeRun run(int64_t layer, const modeling::MicroBatch& batch);

  // This rank's micro-batches that have tokens.
  using Batches = std::vector<modeling::RouterReplay::Batch>;
  // Before those of a train call. Scales the balancing losses: with calculate_per_token_loss each is a mean over the
  // tokens of the global batch, otherwise over its micro-batches. Collective if there are such losses.
  void begin_global_batch(const Batches& batches);
  // Name and value of each balancing loss of the global batch, without its coefficient: the mean over layers, and over
  // what it is trained as a mean over (begin_global_batch). The same on all ranks. Collective if there are such losses.
  std::map<std::string, double> take_losses();

  // Moves the expert biases by the tokens of the global batch (Megatron's finalize_model_grads); collective where
  // there are any.
  void update_expert_biases();
  void forget_tokens();

  // Null unless policy.router_replay asks for it.
  modeling::RouterReplay* replay() { return replay_ ? &*replay_ : nullptr; }

 private:
  std::string bias_name(int64_t layer) const;

  const Settings& settings_;
  const Groups& groups_;
  LocalWeights& weights_;
  at::Device device_;
  std::map<int64_t, modeling::Router> routers_;  // by layer
  std::optional<modeling::RouterReplay> replay_;
  double loss_scale_ = 1;
  double micro_batches_ = 0, tokens_ = 0;  // of all data-parallel ranks
};

}  // namespace hexad::megatron
