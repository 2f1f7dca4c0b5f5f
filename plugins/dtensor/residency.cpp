#include "plugins/dtensor/residency.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <vector>

namespace hexad::dtensor {

Residency::Residency(ShardedModel& model, modeling::Fp8Casts& casts, const modeling::MemoryMeter& meter,
                     const Wishes& wishes)
    : model_(model), casts_(casts), meter_(meter), wishes_(wishes) {}

Residency::Call::Call(Residency& owner, Kind kind, std::span<const hexad_batch* const> batches)
    : owner_(owner),
      kind_(kind),
      batches_(batches),
      allocated_(owner.meter_.allocated_bytes()),
      exceptions_(std::uncaught_exceptions()) {
  use_.stayed = owner.needs_[static_cast<size_t>(kind)].measured();
}

Residency::Call::~Call() {
  modeling::MemoryNeed& need = owner_.needs_[static_cast<size_t>(kind_)];
  if (std::uncaught_exceptions() == exceptions_) {
    const int64_t batches = std::ssize(batches_);
    if (batches == 1) measure_first();
    use_.peak = used(), use_.later_tokens = most_tokens(1, batches);
    need.learn(use_);
  } else {
    need.fail();
  }
  owner_.casts_.clear();
  for (ShardedUnit& unit : owner_.model_.units()) {
    unit.stay({});
    unit.reshard();
  }
}

int64_t Residency::Call::most_tokens(int64_t begin, int64_t end) const {
  int64_t most = -1;
  for (int64_t b = begin; b < end; ++b) most = std::max(most, batches_[static_cast<size_t>(b)]->num_tokens);
  return most;
}

int64_t Residency::Call::used() const {
  return owner_.meter_.highest_bytes() - allocated_ - staying_.sum() - owner_.casts_.bytes();
}

// At its peak no gradient may have waited yet.
void Residency::Call::measure_first() {
  use_.first_peak = owner_.meter_.highest_bytes() - allocated_ - staying_.weights;
  use_.first_left = owner_.meter_.allocated_bytes() - allocated_ - staying_.sum() - owner_.casts_.bytes();
  use_.first_tokens = most_tokens(0, 1);
}

void Residency::Call::before(int64_t index) {
  if (index == 1) measure_first();
  if (decided_) return;
  int64_t budget = 0;
  if (owner_.by_memory(kind_)) {
    modeling::MemoryNeed& need = owner_.needs_[static_cast<size_t>(kind_)];
    if (index == 0 && !need.known()) {
      staying_ = owner_.choose(kind_, std::ssize(batches_), 0);
      return;
    }
    if (index > 0) need.learn(use_.first_peak, use_.first_tokens);  // what it left is in use now
    budget = owner_.free_bytes(most_tokens(0, std::ssize(batches_)), kind_);
  }
  staying_ = owner_.choose(kind_, std::ssize(batches_), budget);
  decided_ = true;
}

bool Residency::by_memory(Kind kind) const {
  const bool weights = !wishes_.reshard_after_forward, gradients = !defer_wish() && kind == Kind::training;
  return !model_.options().compute_device.is_cpu() && (weights || gradients || wishes_.casts);
}

// The least of any rank: all of them have to choose alike.
int64_t Residency::free_bytes(int64_t most_tokens, Kind kind) const {
  const at::Device device = model_.options().compute_device;
  const modeling::MemoryNeed& need = needs_[static_cast<size_t>(kind)];
  const double left = need.measured() ? modeling::unused_bytes(meter_, device) - need.of(most_tokens) : 0;
  const at::Tensor least = at::full({1}, -left, at::TensorOptions(device).dtype(at::kDouble));
  model_.groups().world.all_reduce(least, modeling::Reduce::max).wait();
  return static_cast<int64_t>(-least.item<double>());
}

// A deterministic run's sums must not go by the memory that others have left.
std::optional<bool> Residency::defer_wish() const {
  if (!wishes_.defer_grad_sync && at::globalContext().deterministicAlgorithms()) return false;
  return wishes_.defer_grad_sync;
}

// Weights first: a byte of them saves two of traffic a micro-batch and pass, a byte of gradients one. Casts last: each
// byte saves four, but in the GPU's own memory. The forward pass comes first, whose casts save most.
Residency::Taken Residency::choose(Kind kind, int64_t batches, int64_t budget) {
  const bool again = kind == Kind::training || batches > 1;
  std::vector<ShardedUnit::Stays> stays(model_.units().size());
  Taken taken;
  const auto take = [&](bool& stay, int64_t& part, int64_t bytes, const std::optional<bool>& wish) {
    stay = bytes > 0 && wish.value_or(taken.sum() + bytes <= budget);
    if (stay) part += bytes;
  };
  const std::optional<bool> weights =
      wishes_.reshard_after_forward ? std::optional<bool>(!*wishes_.reshard_after_forward) : std::nullopt;
  for (size_t u = 0; again && u < stays.size(); ++u)
    take(stays[u].weights, taken.weights, model_.units()[u].full_bytes(), weights);
  for (size_t u = 0; kind == Kind::training && batches > 1 && u < stays.size(); ++u)
    take(stays[u].gradients, taken.gradients, model_.units()[u].unreduced_bytes(), defer_wish());
  for (size_t u = 0; u < stays.size(); ++u) model_.units()[u].stay(stays[u]);
  const bool all = model_.options().compute_device.is_cpu();
  casts_.keep(batches == 1 ? 0
              : all        ? std::numeric_limits<int64_t>::max()
                           : std::max<int64_t>(0, budget - taken.sum()));
  return taken;
}

}  // namespace hexad::dtensor
