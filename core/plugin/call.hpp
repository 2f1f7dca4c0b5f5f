// One call of the host into a plugin: what hexad_call stands for.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include <hexad/abi.h>

namespace hexad::plugin {

struct Metric {
  std::string name;
  double value = 0;  // HEXAD_REDUCE_MEAN: the weighted sum
  double weight = 1;
  int32_t reduce = HEXAD_REDUCE_SUM;
};

// What a worker tells its plugins about the work at hand. Callbacks are called from any thread.
struct CallContext {
  int64_t step = 0;
  uint64_t flags = 0;                                               // HEXAD_CALL_*
  int64_t deadline_ns = std::numeric_limits<int64_t>::max();        // CLOCK_MONOTONIC
  const std::atomic<bool>* cancelled = nullptr;                     // set by whoever cancels; null: never
  DLDevice device{kDLCPU, 0};                                       // the worker's
  std::function<void(const Metric&)> metric;                        // empty: host->metric fails with UNIMPLEMENTED
  std::function<void()> alive;                                      // a metric without a name; may be empty
  std::function<std::string(std::span<const int32_t>)> detokenize;  // empty: host->detokenize fails
};

// The error slot of a call (first error wins) and its context. Lives on the stack of the caller of a vtable function.
class Call {
 public:
  // `who` begins the lines that the plugin logs: "loss 'my_loss'". Both are borrowed.
  Call(const CallContext& context, std::string_view who) : context_(context), who_(who) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  hexad_call* handle() { return reinterpret_cast<hexad_call*>(this); }
  static Call& from(hexad_call* call) { return *reinterpret_cast<Call*>(call); }

  hexad_code set_error(hexad_code code, std::string_view text);
  // The first error that was set: HEXAD_OK and "" if none.
  hexad_code error_code() const;
  std::string error_text() const;

  // Keeps bytes alive until the call ends.
  const std::string& keep(std::string bytes);

  const CallContext& context() const { return context_; }
  std::string_view who() const { return who_; }

 private:
  const CallContext& context_;
  std::string_view who_;
  mutable std::mutex mutex_;
  hexad_code code_ = HEXAD_OK;
  std::string text_;
  std::deque<std::string> kept_;
};

// "INVALID_ARGUMENT" of 3; "code 77" of a number that the ABI does not name.
std::string code_name(hexad_code code);

}  // namespace hexad::plugin
