// The arguments of one call on their way to a confined plugin, and its outputs on their way back.
#pragma once
#include <string_view>
#include <vector>

#include <hexad/abi.h>

#include "core/plugin/confined/wire.hpp"
#include "runtime/runtime.h"

namespace hexad::plugin::confined {

// Shared memory of one direction.
struct Arena {
  SharedMemory memory;
  bool known = false;  // to the other side
};

// Arguments are written in the order in which the other side reads them (served_call.hpp). All pointers are borrowed
// until the call is over.
class Request {
 public:
  // `runtime` copies tensors that do not lie in host memory; null where there are none.
  explicit Request(const hexad_runtime* runtime = nullptr) : runtime_(runtime) {}

  Writer arguments;
  hexad_sink sink = nullptr;  // takes what the plugin streams back (state_save)
  void* sink_ctx = nullptr;
  int64_t may_take_ms = 0;     // beyond the usual limit: what the plugin was told to wait
  bool ends_transfer = false;  // the memory for the way down has been used at its largest: let go of it

  // NULL is a tensor too.
  void in(const DLTensor* tensor) { add(inputs_, tensor, inputs_end_); }
  // Zeroed over there, and copied back once the call has succeeded.
  void out(DLTensor* tensor) { add(outputs_, tensor, outputs_end_); }
  void in(const hexad_named_tensor* tensors, int64_t count);

  // Copies the inputs into `down` and makes room for the outputs in `up`, either made anew if it is too small.
  void place(Arena& down, Arena& up) const;
  void collect(const SharedMemory& up) const;

 private:
  struct Placed {
    const DLTensor* tensor;
    uint64_t offset;
  };
  void add(std::vector<Placed>& list, const DLTensor* tensor, uint64_t& end);
  void copy(const DLTensor& from, const DLTensor& to) const;

  const hexad_runtime* runtime_;
  std::vector<Placed> inputs_, outputs_;
  uint64_t inputs_end_ = kTensorsBegin, outputs_end_ = kTensorsBegin;
};

}  // namespace hexad::plugin::confined
