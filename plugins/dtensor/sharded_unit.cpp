#include "plugins/dtensor/sharded_unit.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "modeling/error.hpp"
#include "modeling/parallel/storage.hpp"

namespace hexad::dtensor {
namespace {

using modeling::Placement;

constexpr int64_t kAlignment = 16;  // elements: every weight starts on a cache line

int64_t align(int64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

// The same memory in elements of 8 bytes: strided copies move element by element. kAlignment makes it fit.
at::Tensor in_words(const at::Tensor& x) { return x.view(at::kDouble); }

int64_t product(const std::vector<int64_t>& shape, size_t from) {
  int64_t result = 1;
  for (size_t d = from; d < shape.size(); ++d) result *= shape[d];
  return result;
}

}  // namespace

modeling::WeightSlice ShardedParam::slice() const {
  modeling::WeightSlice slice = part.slice;
  slice.offsets[0] += rows.begin;
  slice.shape[0] = rows.size();
  return slice;
}

ShardedUnit::ShardedUnit(const std::vector<WeightPart>& weights, const modeling::Group& group,
                         const UnitOptions& options)
    : group_(group), options_(options) {
  for (const WeightPart& weight : weights) {
    ShardedParam param;
    param.info = weight.info;
    param.part = weight.part;
    param.shape = weight.part.slice.shape;
    param.rows = modeling::chunk_range(param.shape[0], group.size(), group.rank());
    param.chunk = modeling::chunk_length(param.shape[0], group.size());
    param.row_size = product(param.shape, 1);
    param.offset = shard_size_;
    param.full_offset = full_size_;
    shard_size_ += align(param.chunk * param.row_size);
    full_size_ += align(param.shape[0] * param.row_size);
    index_[param.name()] = params_.size();
    params_.push_back(std::move(param));
  }
  master_ = at::zeros({shard_size_}, at::TensorOptions(options.shard_device).dtype(at::kFloat));
}

at::Tensor ShardedUnit::rows_of(const at::Tensor& flat, size_t i) const {
  const ShardedParam& param = params_[i];
  const std::vector<int64_t> shape =
      modeling::local_shape(param.shape, Placement::shard(0), group_.size(), group_.rank());
  return flat.narrow(0, param.offset, param.rows.size() * param.row_size).view(shape);
}

void ShardedUnit::weights_changed() {
  is_rounded_ = false;
  // Weights that are views of the master have changed with it; copies are stale.
  if (state_ != State::full || aliases(source_)) return;
  state_ = State::sharded;
  modeling::free_storage(full_);
}

at::Tensor ShardedUnit::rounded() const {
  if (!on_device()) return {};
  if (!one_rank()) return rounded_;
  const bool whole = state_ == State::full && full_.defined() && source_.is_same(master_);
  return whole ? full_ : at::Tensor();
}

void ShardedUnit::weights_rounded() {
  if (!one_rank()) weights_changed();
  is_rounded_ = true;
}

void ShardedUnit::move_to(at::Device device) {
  master_ = master_.to(device);
  if (grad_.defined()) grad_ = grad_.to(device);
  state_ = State::sharded;
  is_rounded_ = false;
  source_ = full_ = rounded_ = at::Tensor();
  weights_.clear();
}

bool ShardedUnit::aliases(const at::Tensor& source) const {
  return one_rank() && source.scalar_type() == options_.compute_dtype && source.device() == options_.compute_device;
}

void ShardedUnit::bind(const at::Tensor& flat) {
  const at::NoGradGuard no_grad;
  weights_.clear();
  for (const ShardedParam& param : params_) {
    at::Tensor leaf = at::empty({0}, flat.options());
    leaf.set_(flat.storage(), flat.storage_offset() + param.full_offset, param.shape);
    weights_.push_back(leaf.requires_grad_(true));
  }
}

at::Tensor ShardedUnit::to_gather(const at::Tensor& source) {
  const auto options = at::TensorOptions(options_.compute_device).dtype(options_.compute_dtype);
  if (!source.is_same(master_) || !on_device() || options_.compute_dtype == at::kFloat) return source.to(options);
  if (!rounded_.defined()) rounded_ = at::empty({shard_size_}, options);
  if (!is_rounded_) rounded_.copy_(source);
  is_rounded_ = true;
  return rounded_;
}

void ShardedUnit::make_full() {
  if (!full_.defined()) {
    full_ = at::empty({full_size_}, at::TensorOptions(options_.compute_device).dtype(options_.compute_dtype));
    bind(full_);
  }
  modeling::allocate_storage(full_);
}

void ShardedUnit::prefetch(const at::Tensor& source) {
  if (state_ != State::sharded && source_.is_same(source)) return;
  if (state_ == State::gathering) gathering_.wait();
  const at::NoGradGuard no_grad;
  source_ = source;
  state_ = State::gathering;
  if (one_rank()) return;
  gather_in_ = to_gather(source);
  gathered_ = at::empty({group_.size(), shard_size_}, gather_in_.options());
  const bool beside = options_.side->exists();
  if (beside) make_full();
  options_.side->run([&] {
    gathering_ = group_.all_gather(gathered_, gather_in_);
    if (beside) copy_out();
  });
}

void ShardedUnit::unshard(const at::Tensor& source) {
  prefetch(source);
  if (state_ == State::full) return;
  const at::NoGradGuard no_grad;
  if (aliases(source)) {
    full_ = at::Tensor();
    bind(source);
  } else {
    make_full();
    if (one_rank()) {
      full_.copy_(source);  // one rank: both layouts are the same
    } else if (options_.side->exists()) {
      options_.side->join();
    } else {
      copy_out();
    }
  }
  gathered_ = gather_in_ = at::Tensor();
  state_ = State::full;
}

// Weights behind `first` that are cut into equal parts of the same size, without gaps: the experts of a block.
size_t ShardedUnit::end_of_run(size_t first) const {
  const auto part = [](const ShardedParam& param) { return param.chunk * param.row_size; };
  const int64_t size = part(params_[first]);
  size_t end = first;
  while (end < params_.size() && part(params_[end]) == size && align(size) == size &&
         params_[end].chunk * group_.size() == params_[end].shape[0])
    ++end;
  return std::max(end, first + 1);
}

void ShardedUnit::copy_out() {
  gathering_.wait();
  for (size_t i = 0, end = 0; i < params_.size(); i = end) {
    end = end_of_run(i);
    const ShardedParam& param = params_[i];
    const int64_t whole_ranks = param.shape[0] / param.chunk, part_size = param.chunk * param.row_size;
    if (end - i > 1) {
      const auto count = static_cast<int64_t>(end - i);
      const at::Tensor parts = in_words(gathered_.narrow(1, param.offset, count * part_size));
      const at::Tensor full = in_words(full_.narrow(0, param.full_offset, count * whole_ranks * part_size));
      full.view({count, whole_ranks, -1}).copy_(parts.unflatten(1, {count, -1}).transpose(0, 1));
      continue;
    }
    const at::Tensor parts = gathered_.narrow(1, param.offset, part_size);
    const at::Tensor full = full_.narrow(0, param.full_offset, param.shape[0] * param.row_size);
    full.narrow(0, 0, whole_ranks * part_size).view({whole_ranks, part_size}).copy_(parts.narrow(0, 0, whole_ranks));
    const int64_t rest = full.size(0) - whole_ranks * part_size;
    if (rest > 0) full.narrow(0, whole_ranks * part_size, rest).copy_(parts[whole_ranks].narrow(0, 0, rest));
  }
}

void ShardedUnit::reshard() {
  if (one_rank() || stays_.weights || state_ != State::full) return;
  state_ = State::sharded;
  modeling::free_storage(full_);
}

int64_t ShardedUnit::full_bytes() const {
  return one_rank() ? 0 : full_size_ * static_cast<int64_t>(c10::elementSize(options_.compute_dtype));
}

int64_t ShardedUnit::held_bytes() const {
  size_t bytes = master_.nbytes();
  if (rounded_.defined()) bytes += rounded_.nbytes();
  if (full_.defined()) bytes += full_.storage().nbytes();
  return static_cast<int64_t>(bytes);
}

int64_t ShardedUnit::unreduced_bytes() const {
  return one_rank() ? 0 : group_.size() * shard_size_ * static_cast<int64_t>(sizeof(float));
}

const at::Tensor& ShardedUnit::weight(const std::string& name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) modeling::fail("the unit has no weight '{}'", name);
  return weights_[found->second];
}

void ShardedUnit::add_grad(size_t i, const at::Tensor& grad) {
  const at::Tensor sum = grad_accumulator(i);
  sum.add_(grad.view(sum.sizes()));
}

at::Tensor ShardedUnit::gradient_parts(size_t i) {
  const at::TensorOptions fp32 = at::TensorOptions(options_.compute_device).dtype(at::kFloat);
  if (!reduce_in_.defined()) reduce_in_ = at::zeros({group_.size(), shard_size_}, fp32);
  return reduce_in_.narrow(1, params_[i].offset, params_[i].chunk * params_[i].row_size);
}

at::Tensor ShardedUnit::grad_accumulator(size_t i) {
  const at::NoGradGuard no_grad;
  const ShardedParam& param = params_[i];
  if (one_rank() && on_device()) {
    if (!grad_.defined()) grad_ = at::zeros_like(master_);
    return rows_of(grad_, i);
  }
  if (param.chunk * group_.size() == param.shape[0]) {
    std::vector<int64_t> shape = param.shape;
    const at::Tensor parts = gradient_parts(i);
    if (parts.is_contiguous()) return parts.view(shape);
    shape[0] = param.chunk;
    shape.insert(shape.begin(), group_.size());
    return parts.view(shape);
  }
  uneven_grads_.resize(params_.size());
  if (!uneven_grads_[i].defined())
    uneven_grads_[i] = at::zeros(param.shape, at::TensorOptions(options_.compute_device).dtype(at::kFloat));
  return uneven_grads_[i];
}

void ShardedUnit::offer_sums(modeling::OfferedSums& sums) {
  for (size_t i = 0; i < weights_.size(); ++i)
    if (weights_[i].dim() == 2) sums.offer(weights_[i], grad_accumulator(i));
}

// The last rank has fewer rows of them, or none.
void ShardedUnit::pack_uneven() {
  for (size_t i = 0; i < uneven_grads_.size(); ++i) {
    if (!uneven_grads_[i].defined()) continue;
    const ShardedParam& param = params_[i];
    const at::Tensor parts = gradient_parts(i), grad = uneven_grads_[i].view({-1});
    const int64_t whole_ranks = param.shape[0] / param.chunk, part_size = param.chunk * param.row_size;
    parts.narrow(0, 0, whole_ranks).copy_(grad.narrow(0, 0, whole_ranks * part_size).view({whole_ranks, part_size}));
    const int64_t rest = grad.size(0) - whole_ranks * part_size;
    if (rest > 0) parts[whole_ranks].narrow(0, 0, rest).copy_(grad.narrow(0, whole_ranks * part_size, rest));
  }
  uneven_grads_.clear();
}

void ShardedUnit::start_reduce() {
  const at::NoGradGuard no_grad;
  if (one_rank() && on_device()) return;  // grad_accumulator added to grad() already
  gradient_parts(0);
  pack_uneven();
  reduce_out_ = at::empty({shard_size_}, reduce_in_.options());
  reducing_ = group_.reduce_scatter(reduce_out_, reduce_in_);
}

void ShardedUnit::finish_reduce() {
  if (!reduce_out_.defined()) return;
  const at::NoGradGuard no_grad;
  reducing_.wait();
  const at::Tensor sum = reduce_out_.to(master_.device());
  grad_ = grad_.defined() ? grad_.add_(sum) : sum;
  reduce_in_ = reduce_out_ = at::Tensor();
}

void ShardedUnit::drop_grad() {
  grad_ = reduce_in_ = at::Tensor();
  uneven_grads_.clear();
}

void ShardedUnit::abandon() {
  for (modeling::Pending* pending : {&gathering_, &reducing_}) {
    try {
      pending->wait();
    } catch (const std::exception&) {  // the error that brought us here is the one to report
      *pending = {};
    }
  }
  gathered_ = gather_in_ = reduce_in_ = reduce_out_ = at::Tensor();
  uneven_grads_.clear();
  if (state_ == State::gathering) state_ = State::sharded;
}

}  // namespace hexad::dtensor
