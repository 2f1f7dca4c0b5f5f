#include "plugins/megatron/optimizer/sharded_optimizer.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "modeling/parallel/grad_norm.hpp"

namespace hexad::megatron {
namespace {

constexpr const char* kMasters = "";
constexpr const char* kGradients = "grad";

}  // namespace

ShardedOptimizer::ShardedOptimizer(const Settings& settings, const Groups& groups, LocalWeights& weights,
                                   const GradientBuckets& gradients)
    : settings_(settings),
      groups_(groups),
      weights_(weights),
      gradients_(gradients),
      masters_(settings, weights),
      optimizers_(4, modeling::Optimizer(settings.optimizer)) {
  for (size_t i = 0; i < masters_.pieces().size(); ++i) {
    const MasterPiece& piece = masters_.pieces()[i];
    const modeling::WeightInfo& info = weights_.weights()[piece.weight].info;
    const bool decays = info.shape.size() > 1 && !info.hf_name.ends_with("bias");  // Megatron's rule
    const size_t optimizer = (decays ? kDecays : 0) + (piece.on_host ? kOnHost : 0);
    places_.push_back({optimizer, pieces_of_[optimizer].size()});
    pieces_of_[optimizer].push_back(i);
  }
}

// Of the ranks that put a weight together. Without the distributed optimizer every data-parallel rank owns all of it:
// the first one counts.
bool ShardedOptimizer::counts(const LocalWeight& weight) const {
  return settings_.sharding != Sharding::no_shard || weights_.bucket_of(weight).owners.rank() == 0;
}

double ShardedOptimizer::gradient_norm() const {
  std::vector<at::Tensor> grads;
  for (const MasterPiece& piece : masters_.pieces()) {
    const LocalWeight& weight = weights_.weights()[piece.weight];
    const bool first = weights_.bucket_of(weight).replicas.rank() == 0;
    if (first && counts(weight) && weight.owned()) grads.push_back(gradients_.sum(piece));
  }
  if (grads.empty()) grads.push_back(at::zeros({1}, at::TensorOptions(weights_.device()).dtype(at::kFloat)));
  return modeling::global_grad_norm(grads, 2.0, groups_.world);
}

void ShardedOptimizer::step(double lr, double weight_decay) {
  const at::NoGradGuard no_grad;
  weights_.settle();
  for (size_t optimizer = 0; optimizer < optimizers_.size(); ++optimizer)
    update(optimizer, lr, optimizer & kDecays ? weight_decay : 0.0);
  weights_.gather_owned();
}

// All pieces in one launch; where something must be widened for it, piece by piece, so that little of it is wide at
// once.
void ShardedOptimizer::update(size_t number, double lr, double weight_decay) {
  const std::vector<size_t>& pieces = pieces_of_[number];
  const modeling::OptimizerOptions& options = settings_.optimizer;
  const bool wide = (number & kOnHost || masters_.in_place()) && options.average_type == at::kFloat &&
                    options.square_type == at::kFloat && settings_.main_gradient_dtype == at::kFloat;
  const at::TensorOptions fp32 = at::TensorOptions(number & kOnHost ? at::kCPU : weights_.device()).dtype(at::kFloat);
  modeling::Optimizer& optimizer = optimizers_[number];
  optimizer.begin_step();
  for (size_t first = 0; first < pieces.size();) {
    const size_t end = wide ? pieces.size() : first + 1;
    std::vector<at::Tensor> masters, grads;
    for (size_t i = first; i < end; ++i) {
      masters.push_back(masters_.load(pieces[i]));
      grads.push_back(gradients_.sum(masters_.pieces()[pieces[i]]).to(fp32));
    }
    optimizer.update(first, masters, grads, lr, weight_decay);
    for (size_t i = first; i < end; ++i) masters_.store(pieces[i], masters[i - first]);
    first = end;
  }
}

void ShardedOptimizer::parameters_changed() {
  for (size_t i = 0; i < places_.size(); ++i) masters_.take_parameter(i);
}

at::Tensor ShardedOptimizer::like(size_t piece) const {
  const MasterPiece& p = masters_.pieces()[piece];
  return p.on_host ? masters_.load(piece) : weights_.owned(p);
}

at::Tensor ShardedOptimizer::value(const std::string& name, size_t piece) {
  if (name == kMasters) return masters_.load(piece);
  const MasterPiece& p = masters_.pieces()[piece];
  if (name == kGradients) return gradients_.present() ? gradients_.sum(p) : at::zeros_like(weights_.owned(p));
  return optimizers_[places_[piece].optimizer].state(name, places_[piece].index, like(piece));
}

at::Tensor ShardedOptimizer::owned_part(const std::string& name, const LocalWeight& weight) {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = at::zeros({weight.in_buffer.size()}, at::TensorOptions(weights_.device()).dtype(at::kFloat));
  const size_t index = weights_.index(weight);
  for (size_t i = 0; counts(weight) && i < places_.size(); ++i) {
    const MasterPiece& piece = masters_.pieces()[i];
    if (piece.weight == index) narrow(flat, piece.in_weight).copy_(value(name, i));
  }
  return flat.view(weight.part.slice.shape);
}

at::Tensor ShardedOptimizer::summed_part(const std::string& name, const LocalWeight& weight) {
  const at::Tensor part = owned_part(name, weight);
  weights_.bucket_of(weight).owners.all_reduce(part).wait();
  return part;
}

void ShardedOptimizer::set(const std::string& name, const LocalWeight& weight, const at::Tensor& slice) {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = slice.reshape({-1});
  const size_t index = weights_.index(weight);
  for (size_t i = 0; i < places_.size(); ++i) {
    const MasterPiece& piece = masters_.pieces()[i];
    if (piece.weight != index) continue;
    const at::Tensor part = narrow(flat, piece.in_weight);
    if (name == kMasters) {
      masters_.store(i, part);
    } else {
      optimizers_[places_[i].optimizer].set_state(name, places_[i].index, like(i), part);
    }
  }
}

void ShardedOptimizer::set_steps(int64_t steps) {
  for (modeling::Optimizer& optimizer : optimizers_) optimizer.set_steps(steps);
}

int64_t ShardedOptimizer::state_bytes() const {
  int64_t bytes = 0;
  for (const modeling::Optimizer& optimizer : optimizers_) bytes += optimizer.state_bytes();
  return bytes;
}

void ShardedOptimizer::move_to(at::Device device) {
  masters_.move_to(device);
  for (size_t optimizer = 0; optimizer < kOnHost; ++optimizer) optimizers_[optimizer].move_to(device);
}

}  // namespace hexad::megatron
