#include "plugins/megatron/optimizer/master_weights.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

namespace hexad::megatron {

MasterWeights::MasterForm MasterWeights::form_of(const Settings& settings) {
  if (settings.compute_dtype == at::kFloat) return MasterForm::parameters;
  if (settings.master_dtype == at::kHalf) return MasterForm::float16;
  const bool shares_bits = settings.precision_aware && settings.compute_dtype == at::kBFloat16;
  return shares_bits ? MasterForm::remainder : MasterForm::fp32;
}

MasterWeights::MasterWeights(const Settings& settings, LocalWeights& weights)
    : weights_(weights), form_(form_of(settings)) {
  cut_pieces(settings.offload_fraction);
  narrow_.resize(pieces_.size());
  int64_t on_host = 0, on_device = 0;
  for (const MasterPiece& piece : pieces_) (piece.on_host ? on_host : on_device) += piece.in_buffer.size();
  const at::TensorOptions fp32 = at::TensorOptions(weights.device()).dtype(at::kFloat);
  host_ = at::zeros({on_host}, fp32.device(at::kCPU));
  const bool flat = form_ == MasterForm::fp32 || form_ == MasterForm::remainder;
  device_ = at::zeros({flat ? on_device : 0}, form_ == MasterForm::remainder ? fp32.dtype(at::kShort) : fp32);
  for (size_t i = 0; i < pieces_.size(); ++i)
    if (!pieces_[i].on_host && form_ == MasterForm::float16)
      narrow_[i] = modeling::StateTensor(weights.owned(pieces_[i]), at::kHalf);
}

void MasterWeights::cut_pieces(double fraction) {
  // Elements that vector instructions take together. Those left over at an end may be rounded otherwise: a cut makes
  // none.
  constexpr int64_t kRun = 64;
  int64_t total = 0, in_host = 0, in_device = 0;
  for (const WeightBucket& bucket : weights_.buckets())
    for (const OwnedPiece& piece : bucket.pieces) total += piece.in_buffer.size();
  const auto wanted = static_cast<int64_t>(fraction * static_cast<double>(total));
  const auto add = [&](OwnedPiece piece, int64_t begin, int64_t end, bool on_host) {
    if (begin == end) return;
    piece.in_owned += begin;
    piece.in_buffer = {piece.in_buffer.begin + begin, piece.in_buffer.begin + end};
    piece.in_weight = {piece.in_weight.begin + begin, piece.in_weight.begin + end};
    int64_t& used = on_host ? in_host : in_device;
    pieces_.push_back({piece, on_host, used});
    used += end - begin;
  };
  for (const WeightBucket& bucket : weights_.buckets()) {
    for (const OwnedPiece& piece : bucket.pieces) {
      const int64_t size = piece.in_buffer.size(), left = wanted - in_host;
      const int64_t host = left >= size ? size : left / kRun * kRun;
      add(piece, 0, host, true);
      add(piece, host, size, false);
    }
  }
}

at::Tensor MasterWeights::flat(size_t piece) const {
  const MasterPiece& p = pieces_[piece];
  return (p.on_host ? host_ : device_).narrow(0, p.in_flat, p.in_buffer.size());
}

at::Tensor MasterWeights::load(size_t piece) const {
  const MasterPiece& p = pieces_[piece];
  if (p.on_host || form_ == MasterForm::fp32) return flat(piece);
  if (form_ == MasterForm::float16) return narrow_[piece].load();
  const at::Tensor parameter = weights_.owned(p);
  return form_ == MasterForm::parameters ? parameter : modeling::join_remainder(parameter, flat(piece));
}

void MasterWeights::store(size_t piece, const at::Tensor& value) {
  const at::NoGradGuard no_grad;
  const MasterPiece& p = pieces_[piece];
  const at::Tensor parameter = weights_.owned(p);
  const at::Tensor taken = p.on_host ? value : value.to(at::TensorOptions(parameter.device()).dtype(at::kFloat));
  if (!p.on_host && form_ == MasterForm::remainder)
    return modeling::split_remainder(taken.contiguous(), parameter, flat(piece));
  if (!p.on_host && form_ == MasterForm::float16) {
    narrow_[piece].store(taken);
    parameter.copy_(narrow_[piece].load());  // of what is kept, so that a resumed run has the same
    return;
  }
  const at::Tensor master = load(piece);
  if (!taken.is_same(master) && taken.data_ptr() != master.data_ptr()) {
    master.copy_(taken);
  }
  if (p.on_host || form_ != MasterForm::parameters) parameter.copy_(taken, /*non_blocking=*/true);
}

void MasterWeights::take_parameter(size_t piece) {
  const MasterPiece& p = pieces_[piece];
  if (p.on_host || form_ != MasterForm::parameters) store(piece, weights_.owned(p).to(at::kFloat));
}

int64_t MasterWeights::bytes() const {
  auto bytes = static_cast<int64_t>(device_.nbytes() + host_.nbytes());
  for (const modeling::StateTensor& narrow : narrow_) bytes += narrow.bytes();
  return bytes;
}

void MasterWeights::move_to(at::Device device) {
  device_ = device_.to(device);
  for (modeling::StateTensor& narrow : narrow_) narrow.move_to(device);
}

}  // namespace hexad::megatron
