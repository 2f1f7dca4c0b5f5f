#include "plugins/megatron/sharded_optimizer.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "modeling/layout/buffer_shards.hpp"
#include "modeling/parallel/grad_norm.hpp"

namespace hexad::megatron {
namespace {

namespace layout = modeling::layout;

constexpr const char* kMasters = "";
constexpr const char* kGradients = "grad";

at::Tensor narrow(const at::Tensor& flat, const modeling::Range& range) {
  return flat.narrow(0, range.begin, range.size());
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(const Settings& settings, const Groups& groups, LocalWeights& weights)
    : settings_(settings),
      groups_(groups),
      weights_(weights),
      decayed_(settings.optimizer),
      plain_(settings.optimizer) {
  for (const WeightBuffer& buffer : weights.buffers()) add_pieces(buffer);
  const bool own_copy = settings.compute_dtype != at::kFloat;
  if (own_copy) masters_ = at::zeros({owned_}, weights.parameters().options().dtype(at::kFloat));
  for (Piece& piece : pieces_)
    piece.master = own_copy ? masters_.narrow(0, piece.in_owned, piece.in_buffer.size())
                            : narrow(weights.parameters(), piece.in_buffer);
}

modeling::Range ShardedOptimizer::owned_range(const WeightBuffer& buffer, size_t bucket) const {
  const layout::Range range = settings_.use_distributed_optimizer
                                  ? layout::shard_range(buffer.layout, bucket, buffer.owners.rank())
                                  : buffer.layout.buckets[bucket].range;
  return {buffer.begin + range.begin, buffer.begin + range.end};
}

modeling::Range ShardedOptimizer::bucket_range(const WeightBuffer& buffer, size_t bucket) {
  const layout::Range range = buffer.layout.buckets[bucket].range;
  return {buffer.begin + range.begin, buffer.begin + range.end};
}

// Without the distributed optimizer every data-parallel rank owns all of it: the first one counts.
bool ShardedOptimizer::counts(const LocalWeight& weight) const {
  return settings_.use_distributed_optimizer || weights_.buffer_of(weight).owners.rank() == 0;
}

void ShardedOptimizer::add_pieces(const WeightBuffer& buffer) {
  const int64_t rank = settings_.use_distributed_optimizer ? buffer.owners.rank() : 0;
  for (size_t bucket = 0; bucket < buffer.layout.buckets.size(); ++bucket) {
    const modeling::Range owned = owned_range(buffer, bucket);
    for (const layout::ParamShard& shard : layout::param_shards(buffer.layout, bucket, rank)) {
      if (shard.in_buffer.size() == 0) continue;
      const modeling::WeightInfo& info = weights_.weights()[shard.param].info;
      const bool decays = !settings_.decay_matrices_only || (info.shape.size() > 1 && !info.hf_name.ends_with("bias"));
      const int64_t begin = buffer.begin + shard.in_buffer.begin;
      pieces_.push_back({shard.param,
                         {begin, begin + shard.in_buffer.size()},
                         {shard.in_param.begin, shard.in_param.end},
                         owned_ + begin - owned.begin,
                         {},
                         decays,
                         pieces_of_[decays]++});
    }
    owned_ += owned.size();
  }
}

void ShardedOptimizer::reduce_gradients() {
  const at::NoGradGuard no_grad;
  const at::Tensor whole = weights_.gradients();
  weights_.drop_gradients();
  const bool sharded = owned_ != whole.numel();
  // One owner: buckets lie end to end, as they do in the buffers.
  const at::Tensor sum = sharded ? at::empty({owned_}, whole.options()) : whole;
  int64_t offset = 0;
  std::vector<modeling::Pending> under_way;
  for (const WeightBuffer& buffer : weights_.buffers()) {
    for (size_t bucket = 0; bucket < buffer.layout.buckets.size(); ++bucket) {
      const at::Tensor part = narrow(whole, bucket_range(buffer, bucket));
      const int64_t size = owned_range(buffer, bucket).size();
      under_way.push_back(sharded ? buffer.owners.reduce_scatter(sum.narrow(0, offset, size), part)
                                  : buffer.owners.all_reduce(part));
      offset += size;
    }
  }
  for (modeling::Pending& pending : under_way) pending.wait();
  gradients_ = gradients_.defined() ? gradients_.add_(sum) : sum;
}

double ShardedOptimizer::gradient_norm() const {
  std::vector<at::Tensor> grads;
  for (const Piece& piece : pieces_) {
    const LocalWeight& weight = weights_.weights()[piece.weight];
    if (counts(weight) && weight.owned()) grads.push_back(gradient_of(piece));
  }
  if (grads.empty()) grads.push_back(at::zeros({1}, weights_.parameters().options().dtype(at::kFloat)));
  return modeling::global_grad_norm(grads, 2.0, groups_.world);
}

void ShardedOptimizer::scale_gradients(double factor) {
  const at::NoGradGuard no_grad;
  gradients_.mul_(factor);
}

void ShardedOptimizer::step(double lr, double weight_decay) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> masters[2], grads[2];
  for (const Piece& piece : pieces_) {
    masters[piece.decays].push_back(piece.master);
    grads[piece.decays].push_back(gradient_of(piece));
  }
  decayed_.step(masters[1], grads[1], lr, weight_decay);
  plain_.step(masters[0], grads[0], lr, 0.0);
  if (masters_.defined())
    for (const Piece& piece : pieces_) narrow(weights_.parameters(), piece.in_buffer).copy_(piece.master);
  gather_parameters();
}

void ShardedOptimizer::gather_parameters() {
  if (!settings_.use_distributed_optimizer) return;
  std::vector<at::Tensor> parts;
  std::vector<modeling::Pending> under_way;
  for (const WeightBuffer& buffer : weights_.buffers()) {
    for (size_t bucket = 0; buffer.owners.size() > 1 && bucket < buffer.layout.buckets.size(); ++bucket) {
      parts.push_back(narrow(weights_.parameters(), owned_range(buffer, bucket)).clone());
      under_way.push_back(
          buffer.owners.all_gather(narrow(weights_.parameters(), bucket_range(buffer, bucket)), parts.back()));
    }
  }
  for (modeling::Pending& pending : under_way) pending.wait();
}

void ShardedOptimizer::parameters_changed() {
  const at::NoGradGuard no_grad;
  if (!masters_.defined()) return;
  for (const Piece& piece : pieces_) piece.master.copy_(narrow(weights_.parameters(), piece.in_buffer));
}

at::Tensor ShardedOptimizer::value(const std::string& name, const Piece& piece) {
  if (name == kMasters) return piece.master;
  if (name == kGradients) return gradients_.defined() ? gradient_of(piece) : at::zeros_like(piece.master);
  return optimizer_of(piece).state(name, piece.index, piece.master);
}

at::Tensor ShardedOptimizer::owned_part(const std::string& name, const LocalWeight& weight) {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = at::zeros({weight.in_buffer.size()}, weights_.parameters().options().dtype(at::kFloat));
  const bool speaks = counts(weight);
  for (const Piece& piece : pieces_)
    if (speaks && &weights_.weights()[piece.weight] == &weight) narrow(flat, piece.in_weight).copy_(value(name, piece));
  return flat.view(weight.part.slice.shape);
}

at::Tensor ShardedOptimizer::summed_part(const std::string& name, const LocalWeight& weight) {
  const at::Tensor part = owned_part(name, weight);
  weights_.buffer_of(weight).owners.all_reduce(part).wait();
  return part;
}

void ShardedOptimizer::set(const std::string& name, const LocalWeight& weight, const at::Tensor& slice) {
  const at::NoGradGuard no_grad;
  const at::Tensor flat = slice.reshape({-1});
  for (const Piece& piece : pieces_)
    if (&weights_.weights()[piece.weight] == &weight) value(name, piece).copy_(narrow(flat, piece.in_weight));
}

void ShardedOptimizer::set_steps(int64_t steps) {
  decayed_.set_steps(steps);
  plain_.set_steps(steps);
}

int64_t ShardedOptimizer::master_bytes() const {
  return masters_.defined() ? static_cast<int64_t>(masters_.nbytes()) : 0;
}

void ShardedOptimizer::move_states(at::Device device) {
  decayed_.move_to(device);
  plain_.move_to(device);
}

}  // namespace hexad::megatron
