// Calls as the process of a confined plugin sees them.
#pragma once
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include <hexad/abi.h>

#include "core/plugin/call.hpp"
#include "core/plugin/confined/wire.hpp"

namespace hexad::plugin::confined {

// One connection to the engine; a thread serves its calls one after the other.
class ServedLane {
 public:
  explicit ServedLane(int socket) : channel_(socket, /*takes_descriptors=*/true) {}

  Frame next_call();
  void answer(const std::string& bytes) { channel_.send(kAnswer, bytes); }
  // During a call, from any thread of the plugin.
  void send(FrameKind kind, const std::string& bytes);
  // The reply's bytes after its code and text, which go to `code` and `text`.
  std::string ask(FrameKind kind, const std::string& bytes, hexad_code& code, std::string& text);

  // The memory that the call with this head uses.
  void take_memory(const CallHead& head, const std::vector<int>& descriptors);
  SharedMemory down, up;

  // The lane whose call this thread serves, or null: lines logged on it go along it.
  static ServedLane*& of_this_thread();

 private:
  Channel channel_;
  std::mutex mutex_;
};

struct ServedContext {
  CallContext call_context;
};

// What stands behind hexad_call there. Arguments are read in the order in which Request wrote them.
class ServedCall : private ServedContext, public Call {
 public:
  ServedCall(ServedLane& lane, const CallHead& head, std::string_view who, Reader arguments);

  static ServedCall& from(hexad_call* call) { return static_cast<ServedCall&>(Call::from(call)); }

  Reader in;
  Writer out;  // the results
  const uint64_t instance;
  ServedLane& lane;

  // The next tensor, in shared memory; NULL if the engine passed NULL. Valid until the call ends.
  DLTensor* tensor() { return tensor_in(lane.down); }
  DLTensor* output();  // likewise; zeroed
  std::vector<hexad_named_tensor> named_tensors();
  template <typename T>
  const T* array() {
    return reinterpret_cast<const T*>(arrays_.emplace_back(to_bytes(in.array<T>())).data());
  }

 private:
  DLTensor* tensor_in(const SharedMemory& memory);
  template <typename T>
  static std::vector<std::max_align_t> to_bytes(const std::vector<T>& values) {
    std::vector<std::max_align_t> bytes(values.size() * sizeof(T) / sizeof(std::max_align_t) + 1);
    std::memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
    return bytes;
  }

  struct Tensor {
    DLTensor view{};
    std::vector<int64_t> shape, strides;
  };
  std::deque<Tensor> tensors_;
  std::deque<std::string> names_;
  std::deque<std::vector<std::max_align_t>> arrays_;
};

// What stands behind hexad_config there: the texts that the plugin was given. The configuration itself stays with the
// engine and is asked for.
struct ServedConfig {
  std::mutex mutex;
  std::deque<std::string> texts;
};

// The plain host table, with a configuration that is asked for.
const hexad_host* served_host();

}  // namespace hexad::plugin::confined
