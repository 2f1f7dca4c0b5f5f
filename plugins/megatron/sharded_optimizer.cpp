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
  add_pieces(weights.buffer());
  const bool own_copy = settings.compute_dtype != at::kFloat;
  if (own_copy) masters_ = at::zeros({owned_}, weights.parameters().options().dtype(at::kFloat));
  for (Piece& piece : pieces_)
    piece.master = own_copy ? masters_.narrow(0, piece.in_owned, piece.in_buffer.size())
                            : narrow(weights.parameters(), piece.in_buffer);
}

layout::Range ShardedOptimizer::owned_range(size_t bucket) const {
  const layout::BufferLayout& buffer = weights_.buffer();
  return settings_.use_distributed_optimizer ? layout::shard_range(buffer, bucket, groups_.dp_cp.rank())
                                             : buffer.buckets[bucket].range;
}

void ShardedOptimizer::add_pieces(const layout::BufferLayout& buffer) {
  size_t counts[2] = {0, 0};
  const int64_t rank = settings_.use_distributed_optimizer ? groups_.dp_cp.rank() : 0;
  for (size_t bucket = 0; bucket < buffer.buckets.size(); ++bucket) {
    for (const layout::ParamShard& shard : layout::param_shards(buffer, bucket, rank)) {
      if (shard.in_buffer.size() == 0) continue;
      const modeling::WeightInfo& info = weights_.weights()[shard.param].info;
      const bool decays = !settings_.decay_matrices_only || (info.shape.size() > 1 && !info.hf_name.ends_with("bias"));
      pieces_.push_back({shard.param,
                         {shard.in_buffer.begin, shard.in_buffer.end},
                         {shard.in_param.begin, shard.in_param.end},
                         owned_ + shard.in_buffer.begin - owned_range(bucket).begin,
                         {},
                         decays,
                         counts[decays]++});
    }
    owned_ += owned_range(bucket).size();
  }
}

void ShardedOptimizer::reduce_gradients() {
  const at::NoGradGuard no_grad;
  const at::Tensor whole = weights_.gradients();
  weights_.drop_gradients();
  at::Tensor sum = whole;  // one owner: buckets lie end to end, as they do in the buffer
  if (!settings_.use_distributed_optimizer) {
    groups_.dp_cp.all_reduce(whole).wait();
  } else if (groups_.dp_cp.size() > 1) {
    sum = at::empty({owned_}, whole.options());
    int64_t offset = 0;
    std::vector<modeling::Pending> under_way;
    for (size_t bucket = 0; bucket < weights_.buffer().buckets.size(); ++bucket) {
      const layout::Range range = weights_.buffer().buckets[bucket].range;
      const int64_t size = owned_range(bucket).size();
      under_way.push_back(
          groups_.dp_cp.reduce_scatter(sum.narrow(0, offset, size), narrow(whole, {range.begin, range.end})));
      offset += size;
    }
    for (modeling::Pending& pending : under_way) pending.wait();
  }
  gradients_ = gradients_.defined() ? gradients_.add_(sum) : sum;
}

double ShardedOptimizer::gradient_norm() const {
  // Without the distributed optimizer every data-parallel rank owns all of it: the first one counts.
  const bool counts = settings_.use_distributed_optimizer || groups_.dp_cp.rank() == 0;
  std::vector<at::Tensor> grads;
  for (const Piece& piece : pieces_)
    if (counts && weights_.weights()[piece.weight].owned()) grads.push_back(gradient_of(piece));
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
  if (!settings_.use_distributed_optimizer || groups_.dp_cp.size() == 1) return;
  const layout::BufferLayout& buffer = weights_.buffer();
  std::vector<at::Tensor> parts;
  std::vector<modeling::Pending> under_way;
  for (size_t bucket = 0; bucket < buffer.buckets.size(); ++bucket) {
    const layout::Range range = buffer.buckets[bucket].range, own = owned_range(bucket);
    parts.push_back(narrow(weights_.parameters(), {own.begin, own.end}).clone());
    under_way.push_back(
        groups_.dp_cp.all_gather(narrow(weights_.parameters(), {range.begin, range.end}), parts.back()));
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
  // Without the distributed optimizer every data-parallel rank owns it: the first one speaks.
  const bool speaks = settings_.use_distributed_optimizer || groups_.dp_cp.rank() == 0;
  for (const Piece& piece : pieces_)
    if (speaks && &weights_.weights()[piece.weight] == &weight) narrow(flat, piece.in_weight).copy_(value(name, piece));
  return flat.view(weight.part.slice.shape);
}

at::Tensor ShardedOptimizer::sum_over_owners(const at::Tensor& part) const {
  groups_.dp_cp.all_reduce(part).wait();
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
