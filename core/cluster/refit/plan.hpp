// Which rank sends which piece of which weight to whom, so that weights go from the trainers' layout to the generators'
// without any rank in between.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace hexad::cluster {

// Elements [offsets[d], offsets[d] + shape[d]) of a weight.
struct Box {
  std::vector<int64_t> offsets, shape;

  int64_t elements() const;
  bool operator==(const Box&) const = default;
};

// A slice of a weight, as a rank holds or needs it (hexad_weight_slice).
struct LayoutSlice {
  std::string name;
  std::vector<int64_t> global_shape;
  Box box;
  uint8_t type_code = 0, bits = 32;  // of the element: DLDataType
};
// A layout comes out of a plugin and through a message. Throws Error(worker) unless its box lies inside its weight.
void check_slice(const LayoutSlice& slice);

using Layout = std::vector<LayoutSlice>;  // of one rank

// One message: elements `box` of slice `slice` of what `to` needs.
struct Piece {
  int from = 0, to = 0;  // ranks
  size_t slice = 0;      // of the receiver's layout
  Box box;
};

struct RefitPlan {
  // Steps that are carried out one after another; a step's slices are complete when it ends. Every rank that is in none
  // of a step's pieces goes on to the next one.
  std::vector<std::vector<Piece>> steps;
  std::vector<int64_t> sent;  // bytes, by rank
};

// Every weight whole, as `held` has them together, in the first rank's order: what a generator needs that takes whole
// weights.
Layout whole_weights(const std::vector<Layout>& held);

// held[r]: what rank r can send; needed[r]: what it must have; each is empty for a rank on the other side. Of several
// ranks that hold an element the one sends it that has sent least so far (bytes, then rank). A step holds slices of
// about step_bytes a receiver. Throws Error(worker) naming a weight of which nobody holds a part, or that differs in
// shape. Weights travel in the type of those who hold them, which `needed` takes over.
RefitPlan plan_refit(const std::vector<Layout>& held, std::vector<Layout>& needed, int64_t step_bytes);

// What one rank does in a refit between ranks that train and ranks that generate.
struct RefitPart {
  struct Send {
    std::string weight;
    int to = 0;
    Box box;  // in the whole weight
  };
  struct Receive {
    size_t slice = 0;  // of `needed`
    int from = 0;
    Box box;
  };
  struct Step {
    std::vector<Send> sends;
    std::vector<Receive> receives;
  };
  std::vector<Step> steps;
  Layout needed;
};

}  // namespace hexad::cluster
