// How calls look on the wire: what both sides of a confined plugin must agree on.
#pragma once
#include <atomic>
#include <cstdint>

#include <hexad/abi.h>

#include "lib/ipc/channel.hpp"
#include "lib/ipc/packet.hpp"
#include "lib/ipc/shared_memory.hpp"

namespace hexad::plugin::confined {

using namespace ipc;

// The kinds of frames.
enum FrameKind : uint32_t {
  // From the engine.
  kCall = 1,  // CallHead, arguments
  kReply,     // to a question: code, text, what was asked for
  // From the plugin's process.
  kAnswer,  // the end of a call: code, text, results
  kLog,     // level, text
  kMetric,  // name, value, weight, reduction
  // Questions: the plugin waits for the reply.
  kDetokenize,  // ids
  kConfig,      // kind of value, path, default
  kSink         // bytes of state
};

// Begins every call; the function's name and its arguments follow. A call brings new shared memory along when what was
// sent before is too small: first that for the way down (tensors to the plugin), then that for the way up.
struct CallHead {
  uint64_t instance = 0;
  int64_t step = 0;
  uint64_t flags = 0;
  int64_t deadline_ns = 0;  // CLOCK_MONOTONIC is the same in both processes
  uint8_t takes_metrics = 0;
  uint8_t detokenizes = 0;
  uint8_t new_down = 0;
  uint8_t new_up = 0;
  uint32_t reserved = 0;
};

// Begins the memory for the way down.
struct SharedHead {
  std::atomic<bool> cancelled;
};
static_assert(std::atomic<bool>::is_always_lock_free);
inline constexpr uint64_t kTensorsBegin = 64;  // in both memories; tensors are aligned to as much

// A tensor in an argument list: where it lies. Its shape follows. present = 0: NULL.
struct TensorHead {
  uint64_t present = 0;
  uint64_t offset = 0;
  DLDataType dtype{};
  uint32_t reserved = 0;
};

// The kind of a configuration value that a plugin asks for.
enum class ConfigType : uint32_t { i64, f64, boolean, text, json };

// "load" is the one function that belongs to no kind: it opens the plugin and answers with the facts of its kind.
inline constexpr const char* kLoad = "load";

inline uint64_t tensor_bytes(const DLTensor& tensor) {
  uint64_t bits = uint64_t{tensor.dtype.bits} * tensor.dtype.lanes;
  for (int32_t d = 0; d < tensor.ndim; ++d) bits *= static_cast<uint64_t>(tensor.shape[d]);
  return (bits + 7) / 8;
}

}  // namespace hexad::plugin::confined
