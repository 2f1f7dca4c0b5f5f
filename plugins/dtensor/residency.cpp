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
      exceptions_(std::uncaught_exceptions()) {}

Residency::Call::~Call() {
  modeling::MemoryNeed& need = owner_.needs_[static_cast<size_t>(kind_)];
  if (std::uncaught_exceptions() == exceptions_) {
    need.learn(used(), most_tokens(std::ssize(batches_)));
  } else {
    need.fail();
  }
  owner_.casts_.clear();
  for (ShardedUnit& unit : owner_.model_.units()) {
    unit.stay({});
    unit.reshard();
  }
}

int64_t Residency::Call::most_tokens(int64_t batches) const {
  int64_t most = 0;
  for (const hexad_batch* batch : batches_.first(static_cast<size_t>(batches)))
    most = std::max(most, batch->num_tokens);
  return most;
}

int64_t Residency::Call::used() const {
  return owner_.meter_.highest_bytes() - allocated_ - staying_ - owner_.casts_.bytes();
}

void Residency::Call::before(int64_t index) {
  if (decided_) return;
  int64_t budget = 0;
  if (owner_.by_memory(kind_)) {
    modeling::MemoryNeed& need = owner_.needs_[static_cast<size_t>(kind_)];
    if (index == 0 && !need.known()) {
      staying_ = owner_.choose(kind_, std::ssize(batches_), 0);
      return;
    }
    if (index > 0) need.learn(used(), most_tokens(index));
    budget = owner_.free_bytes(most_tokens(std::ssize(batches_)), kind_);
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
int64_t Residency::choose(Kind kind, int64_t batches, int64_t budget) {
  const bool again = kind == Kind::training || batches > 1;
  std::vector<ShardedUnit::Stays> stays(model_.units().size());
  int64_t taken = 0;
  const auto take = [&](bool& stay, int64_t bytes, const std::optional<bool>& wish) {
    stay = bytes > 0 && wish.value_or(taken + bytes <= budget);
    if (stay) taken += bytes;
  };
  const std::optional<bool> weights =
      wishes_.reshard_after_forward ? std::optional<bool>(!*wishes_.reshard_after_forward) : std::nullopt;
  for (size_t u = 0; again && u < stays.size(); ++u) take(stays[u].weights, model_.units()[u].full_bytes(), weights);
  for (size_t u = 0; kind == Kind::training && batches > 1 && u < stays.size(); ++u)
    take(stays[u].gradients, model_.units()[u].unreduced_bytes(), defer_wish());
  for (size_t u = 0; u < stays.size(); ++u) model_.units()[u].stay(stays[u]);
  const bool all = model_.options().compute_device.is_cpu();
  casts_.keep(batches == 1 ? 0 : all ? std::numeric_limits<int64_t>::max() : std::max<int64_t>(0, budget - taken));
  return taken;
}

}  // namespace hexad::dtensor
