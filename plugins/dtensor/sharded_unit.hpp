// One unit of a model (a block, the embedding, the head) under FSDP: fp32 master shards, full weights that come and go,
// gradients that are reduce-scattered. Collectives: every rank calls the same functions of the same units in the same
// order.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/family/weight_table.hpp"
#include "modeling/op/linear.hpp"
#include "modeling/parallel/placement.hpp"
#include "modeling/parallel/side_stream.hpp"
#include "modeling/parallel/tensor/plan.hpp"

namespace hexad::dtensor {

// A weight and what this tensor-parallel rank has of it.
struct WeightPart {
  modeling::WeightInfo info;
  modeling::TensorPart part;
};

// A weight inside its unit. Shards are dim-0 chunks (Placement::shard(0)) of the tensor-parallel part, padded to equal
// size and laid end to end in one flat tensor a unit, so that a unit moves in one collective and is updated by one
// kernel.
struct ShardedParam {
  modeling::WeightInfo info;  // the whole weight
  modeling::TensorPart part;
  std::vector<int64_t> shape;  // of the part
  modeling::Range rows;        // of this rank, of the part's
  int64_t chunk = 0;           // rows of a rank, padding included
  int64_t row_size = 0;        // elements of a row
  int64_t offset = 0;          // in the flat shard
  int64_t full_offset = 0;     // in the flat full weights

  const std::string& name() const { return info.hf_name; }
  // What this rank holds of the whole weight.
  modeling::WeightSlice slice() const;
};

struct UnitOptions {
  at::ScalarType compute_dtype = at::kFloat;
  at::Device compute_device = at::kCPU;
  at::Device shard_device = at::kCPU;
  // Where a GPU fills weights that are gathered ahead, beside the computation.
  std::shared_ptr<modeling::SideStream> side = std::make_shared<modeling::SideStream>(at::Device(at::kCPU));
};

class ShardedUnit {
 public:
  ShardedUnit(const std::vector<WeightPart>& weights, const modeling::Group& group, const UnitOptions& options);

  const std::vector<ShardedParam>& params() const { return params_; }
  const modeling::Group& group() const { return group_; }  // the ranks that it is cut over
  int64_t shard_size() const { return shard_size_; }

  // fp32 [shard_size], padding zero. Call weights_changed() after writing to it.
  at::Tensor& master() { return master_; }
  void weights_changed();
  // The master in the compute dtype, as full weights are made of it: who changes the master may write it too, and then
  // calls weights_rounded() in place of weights_changed(). Undefined where there is none.
  at::Tensor rounded() const;
  void weights_rounded();
  // This rank's rows of parameter i in a tensor laid out like master().
  at::Tensor rows_of(const at::Tensor& flat, size_t i) const;
  // Master and gradient go to another device.
  void move_to(at::Device device);

  // Full weights, from shards that are laid out like master(): the master itself or a kept copy of any dtype.
  // With one rank and the master's own dtype and device they are the shards, without a copy.
  void prefetch(const at::Tensor& source);
  void unshard(const at::Tensor& source);
  // Frees the full weights (a graph may still refer to them: unshard fills the same storage again). One rank keeps
  // them, and so does a unit whose weights stay.
  void reshard();
  // Valid after unshard: leaves that require gradients, in the order of params().
  const std::vector<at::Tensor>& weights() const { return weights_; }
  const at::Tensor& weight(const std::string& name) const;
  bool has(const std::string& name) const { return index_.count(name) > 0; }

  // Gradients of this micro-batch, of the full weights; summed over calls.
  void add_grad(size_t i, const at::Tensor& grad);
  // The accumulator itself, in fp32, for ops that add in place. Of the full shape or, where ranks have equal numbers of
  // rows of several weights, as these lie in what is reduced: [ranks, rows of a rank, ...].
  at::Tensor grad_accumulator(size_t i);
  // Accumulators of the matrices.
  void offer_sums(modeling::OfferedSums& sums);
  // What is left in place between the micro-batches of a call, the same on every rank: full weights in spite of
  // reshard(), and gradients that wait for the last micro-batch to be reduced.
  struct Stays {
    bool weights = false, gradients = false;
  };
  void stay(Stays what) { stays_ = what; }
  const Stays& stays() const { return stays_; }
  int64_t full_bytes() const;       // that the full weights take, 0 where they are the shards
  int64_t held_bytes() const;       // that the master and what is made of it take now
  int64_t unreduced_bytes() const;  // that gradients take before they are reduced, 0 where nothing is to be reduced
  // Sums over ranks into grad(): start when the unit's last gradient has come, finish before the next start.
  void start_reduce();
  void finish_reduce();
  // Accumulated fp32 [shard_size]; undefined before the first micro-batch.
  at::Tensor& grad() { return grad_; }
  void drop_grad();

  // After an exception: waits for what is under way and forgets the micro-batch.
  void abandon();

 private:
  enum class State { sharded, gathering, full };

  bool one_rank() const { return group_.size() == 1; }
  bool aliases(const at::Tensor& source) const;
  bool on_device() const { return master_.device() == options_.compute_device; }
  at::Tensor to_gather(const at::Tensor& source);  // in the compute dtype, on the compute device
  void make_full();
  void bind(const at::Tensor& flat);  // weights_ become views of it
  size_t end_of_run(size_t first) const;
  void copy_out();
  at::Tensor gradient_parts(size_t i);  // of weight i in reduce_in_: [ranks, chunk * row_size]
  void pack_uneven();

  modeling::Group group_;
  UnitOptions options_;
  std::vector<ShardedParam> params_;
  std::unordered_map<std::string, size_t> index_;  // of params_, by name
  int64_t shard_size_ = 0, full_size_ = 0;

  at::Tensor master_, grad_;
  at::Tensor rounded_;       // several ranks' master in the compute dtype, where that differs
  bool is_rounded_ = false;  // and up to date
  State state_ = State::sharded;
  Stays stays_;
  at::Tensor source_;  // what the full weights were made of
  at::Tensor full_;    // flat [full_size]; its storage is empty while sharded
  at::Tensor gather_in_, gathered_;
  modeling::Pending gathering_;
  std::vector<at::Tensor> weights_;

  // Of this micro-batch, fp32; undefined where none came: [ranks, shard_size], and weights whose rows do not divide
  // evenly.
  at::Tensor reduce_in_;
  std::vector<at::Tensor> uneven_grads_;
  at::Tensor reduce_out_;
  modeling::Pending reducing_;
};

}  // namespace hexad::dtensor
