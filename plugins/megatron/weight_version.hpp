// One version of the weights that this rank holds, bucket by bucket: all elements, or only those that it owns, from
// which a bucket is put together while it is used (parameters as shards: reference FSDP, ZeRO-3).
#pragma once
#include <map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/parallel/group.hpp"
#include "modeling/parallel/placement.hpp"

namespace hexad::megatron {

inline at::Tensor narrow(const at::Tensor& flat, const modeling::Range& range) {
  return flat.narrow(0, range.begin, range.size());
}

// What this rank owns of one weight in a bucket, or a part of it.
struct OwnedPiece {
  size_t weight;              // index among this rank's weights
  modeling::Range in_buffer;  // elements of the flat tensors
  modeling::Range in_weight;
  int64_t in_owned;  // where it begins in tensors of the owned elements alone
};

struct WeightBucket {
  modeling::Range range;  // elements of the flat tensors
  modeling::Range owned;  // those that this rank reduces and updates: a share, or all
  int64_t in_owned = 0;   // where they begin in tensors of the owned elements alone, bucket after bucket
  std::vector<OwnedPiece> pieces;
  std::vector<size_t> weights;  // that lie in it, whole
  bool expert = false;
  modeling::Group owners;    // the ranks that hold the same parameters and share what is sharded
  modeling::Group replicas;  // those that own the same part in other instances of the distributed optimizer
};

class WeightVersion {
 public:
  // `held`: flat; all elements, or with `sharded` the owned ones, on the device or the host. Used on `device` in
  // held's dtype.
  WeightVersion(const std::vector<WeightBucket>& buckets, at::Tensor held, bool sharded, at::Device device);

  at::Tensor& held() { return held_; }
  const at::Tensor& held() const { return held_; }

  // Begins to put a bucket together; finish waits for it. Sharded: collective over its owners.
  void start(size_t bucket);
  void finish(size_t bucket);
  // A leaf over `in_buffer`'s elements of the bucket, which must be finished while it is used.
  const at::Tensor& leaf(size_t weight, size_t bucket, const modeling::Range& in_buffer,
                         const std::vector<int64_t>& shape);
  // The bucket's elements, finished.
  at::Tensor elements(size_t bucket);
  // What was put together gives its memory back; views of held() stay.
  void release(size_t bucket);
  void release_all();
  // held() was written: copies are stale.
  void changed();
  // Every owner's part of the bucket comes into held(), which has all elements; finish waits.
  void gather_in_place(size_t bucket);
  // held() lies elsewhere from now on; leaves are made anew.
  void move_to(at::Device device);
  int64_t bytes() const;

 private:
  struct State {
    at::Tensor full;  // the bucket's elements: a view of held(), or storage that comes and goes
    at::Tensor part;  // sent, while under way
    modeling::Pending under_way;
    bool ready = false;
  };
  bool aliases() const { return !sharded_ && held_.device() == device_; }
  void bind(size_t bucket);

  const std::vector<WeightBucket>& buckets_;
  at::Tensor held_;
  bool sharded_;
  at::Device device_;
  std::vector<State> states_;
  std::map<size_t, at::Tensor> leaves_;  // by weight
};

}  // namespace hexad::megatron
