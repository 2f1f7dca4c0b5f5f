// A call into a stranger's code that may never return.
#pragma once
#include <atomic>
#include <exception>
#include <functional>

namespace hexad::environment {

// How such a call came back.
struct CallEnd {
  bool returned = false;     // false: it goes on, and nobody waits for it
  bool interrupted = false;  // it was told to end, because the run is
  bool late = false;         // it was told to end, because its time was over
  std::exception_ptr error;  // that it ended with
};

// Runs the call on a thread of its own and waits for it: for `limit_s` at most, and for kInterruptGrace after
// `interrupted` (null: never set) was above 0. A second before it stops to wait it sets `cancelled`. What goes on then
// is left alone: the call has to own all that it uses, and this process will end without the destructors of statics.
CallEnd watch_call(std::function<void(const std::atomic<bool>& cancelled)> call, double limit_s,
                   const std::atomic<int>* interrupted);

}  // namespace hexad::environment
