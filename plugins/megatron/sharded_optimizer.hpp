// fp32 masters and optimizer state over the data-parallel ranks: each owns an equal part of every bucket (Megatron's
// distributed optimizer, ZeRO-1), or every rank owns all of it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "modeling/parallel/optimizer.hpp"
#include "plugins/megatron/local_weights.hpp"

namespace hexad::megatron {

class ShardedOptimizer {
 public:
  ShardedOptimizer(const Settings& settings, const Groups& groups, LocalWeights& weights);

  // Takes the weights' gradients, sums them over the data-parallel ranks, each the part that it owns, and adds them to
  // what it took before. Collective.
  void reduce_gradients();
  void drop_gradients() { gradients_ = at::Tensor(); }
  // L2 norm of the gradient of the whole model, each element counted once. Collective over the world.
  double gradient_norm() const;
  void scale_gradients(double factor);
  // One update of what this rank owns; then every rank gets the new parameters. Collective.
  void step(double lr, double weight_decay);

  // The masters take over parameters that were written.
  void parameters_changed();

  // The slice of masters, gradients or a state, put together from its owners' parts. Names: "" masters, "grad", or a
  // state's. Collective over the ranks that hold the weight's slice.
  at::Tensor summed_part(const std::string& name, const LocalWeight& weight);
  // Writes the owned part of masters or a state from the whole slice.
  void set(const std::string& name, const LocalWeight& weight, const at::Tensor& slice);

  std::vector<std::string> state_names() const { return decayed_.state_names(); }
  int64_t steps() const { return decayed_.steps(); }
  void set_steps(int64_t steps);
  int64_t master_bytes() const;
  int64_t gradient_bytes() const { return gradients_.defined() ? static_cast<int64_t>(gradients_.nbytes()) : 0; }
  int64_t state_bytes() const { return decayed_.state_bytes() + plain_.state_bytes(); }
  void move_states(at::Device device);
  const modeling::OptimizerOptions& options() const { return decayed_.options(); }

 private:
  // A run of elements that this rank owns, of one weight.
  struct Piece {
    size_t weight;  // index into LocalWeights::weights()
    modeling::Range in_buffer;
    modeling::Range in_weight;
    int64_t in_owned;   // offset in gradients_
    at::Tensor master;  // a view of masters_ or, in fp32, of the parameters
    bool decays;
    size_t index;  // among the pieces of its optimizer
  };
  void add_pieces(const WeightBuffer& buffer);
  bool counts(const LocalWeight& weight) const;
  // Of a slice's shape: zero where this rank owns nothing, so that the sum over the owners is the slice.
  at::Tensor owned_part(const std::string& name, const LocalWeight& weight);
  modeling::Optimizer& optimizer_of(const Piece& piece) { return piece.decays ? decayed_ : plain_; }
  at::Tensor value(const std::string& name, const Piece& piece);
  at::Tensor gradient_of(const Piece& piece) const {
    return gradients_.narrow(0, piece.in_owned, piece.in_buffer.size());
  }
  // A bucket, and the part of it that this rank owns, in the flat tensors.
  static modeling::Range bucket_range(const WeightBuffer& buffer, size_t bucket);
  modeling::Range owned_range(const WeightBuffer& buffer, size_t bucket) const;
  void gather_parameters();

  const Settings& settings_;
  const Groups& groups_;
  LocalWeights& weights_;
  std::vector<Piece> pieces_;
  size_t pieces_of_[2] = {0, 0};  // of plain_ and decayed_
  int64_t owned_ = 0;             // elements that this rank owns, gaps of the buffer included
  at::Tensor masters_;            // undefined when the parameters are the masters
  at::Tensor gradients_;          // flat fp32 [owned_], undefined before the first
  modeling::Optimizer decayed_, plain_;
};

}  // namespace hexad::megatron
