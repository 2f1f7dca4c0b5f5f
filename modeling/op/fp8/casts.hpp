// Weights in FP8 that stay between the micro-batches of a call of a backend, which would cast them forward and backward
// in each: weights do not change inside of a call. Bits are those of casting every time.
//
// Who opens it (keep) closes it at the end of the call (clear): nothing is left then to be stale, whatever becomes of
// the weights afterwards. Transformer Engine keeps such casts from `is_first_microbatch` to the next, at its caller's
// word.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "modeling/op/fp8/fp8.hpp"

namespace hexad::modeling {

class Fp8Casts {
 public:
  Fp8Casts() = default;
  Fp8Casts(const Fp8Casts&) = delete;

  // From now on casts stay, the first ones that come, as long as all of them are at most `bytes`. Of the others ranges
  // stay: they find no largest magnitude again. Until then nothing does.
  void keep(int64_t bytes) { most_ = bytes; }
  // Nothing stays any more; call it before weights change.
  void clear();
  // That the casts take which stay (ranges are not counted: 8 bytes a scale).
  int64_t bytes() const { return bytes_; }

  // One layout (rows or columns) of a cast of `weights`, which are always cast together, and all by one recipe; `make`
  // makes it where it is not there, of the known range if there is one. A weight is known by its tensor, not its
  // memory, which may come and go. Used by one thread at a time.
  using Make = std::function<Fp8Tensor(const Fp8Range& known)>;
  Fp8Tensor get(const std::vector<at::Tensor>& weights, Fp8Copies layout, const Make& make);

 private:
  struct Entry {
    std::vector<at::Tensor> weights;  // no other tensor takes their place
    Fp8Tensor cast;                   // what stays of it
  };
  std::optional<int64_t> most_;
  int64_t bytes_ = 0;
  std::map<std::vector<const void*>, Entry> entries_;
};

}  // namespace hexad::modeling
